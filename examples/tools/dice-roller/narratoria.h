/* narratoria.h: the kit for tools in C. One file, plain C11, no library: the events, and just enough JSON.
 *
 *     #include "narratoria.h"
 *     static int run(json input) {
 *         nt_log("info", "Clearing my throat...");
 *         nt_patch("{\"lamp\":{\"lit\":true}}");
 *         return nt_done("The lamp is lit.");
 *     }
 *     int main(void) { return nt_main(run); }
 *
 * Reading never copies and never trusts: a value is a pointer into the text, every step is checked against
 * the end, and nesting deeper than JSON_DEPTH is refused rather than followed. Numbers and strings are
 * checked strictly; text must be UTF-8.
 */
#ifndef NARRATORIA_H
#define NARRATORIA_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON_DEPTH 200
#define JSON_MAX_REQUEST (64u << 20)

typedef struct { const char *at, *end; } json; /* one value; `at` is NULL when there is none */

static inline const char *json_space(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
    return p;
}

/* The length of the well-formed UTF-8 character at p (Unicode, table 3-7), or 0. */
static inline int json_utf8(const char *p, const char *end) {
    const unsigned char *u = (const unsigned char *)p;
    int n = u[0] < 0x80 ? 1 : u[0] < 0xC2 ? 0 : u[0] < 0xE0 ? 2 : u[0] < 0xF0 ? 3 : u[0] < 0xF5 ? 4 : 0;
    if (n == 0 || end - p < n) return 0;
    for (int i = 1; i < n; i++)
        if ((u[i] & 0xC0) != 0x80) return 0;
    if ((u[0] == 0xE0 && u[1] < 0xA0) || (u[0] == 0xED && u[1] > 0x9F)) return 0;
    if ((u[0] == 0xF0 && u[1] < 0x90) || (u[0] == 0xF4 && u[1] > 0x8F)) return 0;
    return n;
}

static inline int json_hex4(const char *p, const char *end) {
    int value = 0;
    if (end - p < 4) return -1;
    for (int i = 0; i < 4; i++) {
        int c = p[i], digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
                            : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* One character of a string, escape or not: its code point in *code. Returns what follows, NULL if malformed. */
static inline const char *json_character(const char *p, const char *end, int *code) {
    if (*p != '\\') {
        int n = (unsigned char)*p < 0x20 ? 0 : json_utf8(p, end);
        if (n == 0) return NULL;
        *code = n == 1 ? *p : (unsigned char)*p & (0xFF >> (n + 1));
        for (int i = 1; i < n; i++) *code = *code << 6 | (p[i] & 0x3F);
        return p + n;
    }
    if (++p == end) return NULL;
    static const char letters[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
    const char *letter = *p ? strchr(letters, *p) : NULL;
    if (letter) return *code = meaning[letter - letters], p + 1;
    if (*p != 'u' || (*code = json_hex4(p + 1, end)) < 0) return NULL;
    p += 5;
    if (*code >= 0xD800 && *code < 0xDC00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
        int low = json_hex4(p + 2, end);
        if (low >= 0xDC00 && low < 0xE000) return *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00), p + 6;
    }
    if (*code >= 0xD800 && *code < 0xE000) *code = 0xFFFD; /* half a surrogate pair is no character */
    return p;
}

static inline const char *json_skip_string(const char *p, const char *end) {
    int code;
    for (p++; p && p < end; p = json_character(p, end, &code))
        if (*p == '"') return p + 1;
    return NULL;
}

static inline const char *json_digits(const char *p, const char *end) {
    const char *from = p;
    while (p < end && *p >= '0' && *p <= '9') p++;
    return p > from ? p : NULL;
}

static inline const char *json_skip_number(const char *p, const char *end) {
    if (*p == '-') p++;
    if (p < end && *p == '0') p++;
    else p = json_digits(p, end);
    if (p && p < end && *p == '.') p = json_digits(p + 1, end);
    if (p && p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-')) p++;
        p = json_digits(p, end);
    }
    return p;
}

/* What follows the value at p, or NULL if there is no well-formed value. */
static inline const char *json_skip(const char *p, const char *end, int depth) {
    if (p == end || depth > JSON_DEPTH) return NULL;
    if (*p == '"') return json_skip_string(p, end);
    if (*p == '-' || (*p >= '0' && *p <= '9')) return json_skip_number(p, end);
    if (end - p >= 4 && (!memcmp(p, "true", 4) || !memcmp(p, "null", 4))) return p + 4;
    if (end - p >= 5 && !memcmp(p, "false", 5)) return p + 5;
    if (*p != '{' && *p != '[') return NULL;
    char close = *p == '{' ? '}' : ']';
    p = json_space(p + 1, end);
    if (p < end && *p == close) return p + 1;
    for (;;) {
        if (close == '}') {
            if (p == end || *p != '"' || !(p = json_skip_string(p, end))) return NULL;
            p = json_space(p, end);
            if (p == end || *p++ != ':') return NULL;
            p = json_space(p, end);
        }
        if (!(p = json_skip(p, end, depth + 1))) return NULL;
        p = json_space(p, end);
        if (p == end || (*p != ',' && *p != close)) return NULL;
        if (*p++ == close) return p;
        p = json_space(p, end);
    }
}

/* The whole text as one value; none when it is not JSON. */
static inline json json_parse(const char *text, size_t length) {
    json value = {json_space(text, text + length), text + length};
    const char *after = json_skip(value.at, value.end, 0);
    if (!after || json_space(after, value.end) != value.end) value.at = NULL;
    return value;
}

static inline char json_kind(json value) { return value.at ? *value.at : 0; } /* '{' '[' '"' 't' 'f' 'n' or a digit or '-' */

/* object[key]; none when it is no object or has no such key. Keys are compared as written, without escapes. */
static inline json json_member(json object, const char *key) {
    json none = {NULL, NULL};
    size_t length = strlen(key);
    if (json_kind(object) != '{') return none;
    const char *p = json_space(object.at + 1, object.end);
    while (*p == '"') {
        const char *name = p + 1, *after = json_skip_string(p, object.end);
        p = json_space(json_space(after, object.end) + 1, object.end);
        const char *next = json_skip(p, object.end, 0);
        if ((size_t)(after - 1 - name) == length && !memcmp(name, key, length)) return (json){p, next};
        p = json_space(next, object.end);
        if (*p == ',') p = json_space(p + 1, object.end);
    }
    return none;
}

/* The text of a string in UTF-8, ended by 0. False when it is no string, holds a 0, or does not fit in `size`. */
static inline bool json_string(json value, char *text, size_t size) {
    if (json_kind(value) != '"') return false;
    size_t used = 0;
    for (const char *p = value.at + 1; *p != '"';) {
        int c;
        p = json_character(p, value.end, &c);
        if (c == 0 || used + 5 > size) return false;
        if (c < 0x80) text[used++] = (char)c;
        else {
            int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
            text[used++] = (char)(0xFF00 >> (more + 1) | c >> 6 * more);
            while (more--) text[used++] = (char)(0x80 | (c >> 6 * more & 0x3F));
        }
    }
    text[used] = 0;
    return true;
}

/* Writes text as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD. */
static inline void json_write(FILE *out, const char *text) {
    const char *end = text + strlen(text);
    fputc('"', out);
    while (text < end) {
        int n = json_utf8(text, end);
        if (*text == '"' || *text == '\\') fprintf(out, "\\%c", *text);
        else if (n == 1 && (unsigned char)*text < 0x20) fprintf(out, "\\u%04x", *text);
        else if (n == 0) fputs("\xEF\xBF\xBD", out);
        else fwrite(text, 1, (size_t)n, out);
        text += n ? n : 1;
    }
    fputc('"', out);
}

/* All of a stream, ended by 0; NULL when it is longer than JSON_MAX_REQUEST or memory is short. */
static inline char *json_read_all(FILE *in, size_t *length) {
    size_t room = 1 << 16, got;
    char *text = malloc(room + 1);
    *length = 0;
    while (text && (got = fread(text + *length, 1, room - *length, in)) > 0) {
        *length += got;
        if (*length < room) continue;
        char *more = room < JSON_MAX_REQUEST ? realloc(text, (room *= 2) + 1) : NULL;
        if (!more) return free(text), NULL;
        text = more;
    }
    if (text) text[*length] = 0;
    return text;
}

/* --- events: each function writes one, flushed, so that it is seen the moment it happens --------------------------- */

/* Opens an event of any type; write its other fields, then call `nt_end`. */
static inline void nt_begin(const char *type) { printf("{\"version\":\"0\",\"type\":\"%s\"", type); }

static inline void nt_end(void) {
    printf("}\n");
    fflush(stdout);
}

/* ,"key":"text" with the text escaped. */
static inline void nt_text(const char *key, const char *text) {
    printf(",\"%s\":", key);
    json_write(stdout, text);
}

/* ,"key":value with the value written as JSON. */
static inline void nt_json(const char *key, const char *value) { printf(",\"%s\":%s", key, value); }

/* A line for whoever watches; the level is debug, info, warn or error. */
static inline void nt_log(const char *level, const char *message) {
    nt_begin("log");
    nt_text("level", level);
    nt_text("message", message);
    nt_end();
}

/* Moves the progress bar: 0 is the beginning, 100 the end. */
static inline void nt_progress(int percent, const char *message) {
    nt_begin("log");
    nt_text("level", "info");
    nt_text("message", message);
    printf(",\"fields\":{\"progress\":%d.%02d}", percent / 100, percent % 100);
    nt_end();
}

/* Changes the state; the patch is a JSON object. Objects are merged, arrays replaced, null removes a key. */
static inline void nt_patch(const char *patch) {
    nt_begin("state_patch");
    nt_json("patch", patch);
    nt_end();
}

/* Shows a file that has been written; the path is absolute. */
static inline void nt_asset(const char *id, const char *kind, const char *media_type, const char *path) {
    nt_begin("asset");
    nt_text("assetId", id);
    nt_text("kind", kind);
    nt_text("mediaType", media_type);
    nt_text("path", path);
    nt_end();
}

/* Offers the player choices. */
static inline void nt_choices(const char *const *texts, size_t count) {
    nt_begin("ui_event");
    nt_text("event", "narrative_choice");
    printf(",\"payload\":{\"choices\":[");
    for (size_t i = 0; i < count; i++) {
        if (i) putchar(',');
        json_write(stdout, texts[i]);
    }
    printf("]}");
    nt_end();
}

/* Ends the call. Returns the exit code. */
static inline int nt_done(const char *summary) {
    nt_begin("done");
    nt_json("ok", "true");
    nt_text("summary", summary);
    nt_end();
    return 0;
}

/* Fails politely. The exit code is 0 all the same: any other means that the tool broke. */
static inline int nt_refuse(const char *code, const char *reason) {
    nt_begin("error");
    nt_text("errorCode", code);
    nt_text("errorMessage", reason);
    nt_end();
    nt_begin("done");
    nt_json("ok", "false");
    nt_text("summary", reason);
    nt_end();
    return 0;
}

/* Reads the request and answers it with `run`, whose result is the exit code. */
static inline int nt_main(int (*run)(json input)) {
    size_t length;
    char *text = json_read_all(stdin, &length);
    if (!text) return nt_refuse("INVALID_INPUT", "The request does not fit in memory.");
    json request = length ? json_parse(text, length) : json_parse("{}", 2);
    json input = json_member(request, "input");
    int code = !request.at ? nt_refuse("INVALID_INPUT", "The request is not JSON.")
             : json_kind(request) != '{' || (input.at && json_kind(input) != '{')
                 ? nt_refuse("INVALID_INPUT", "The request has no \"input\" object.")
                 : run(input);
    free(text);
    return code;
}

#endif
