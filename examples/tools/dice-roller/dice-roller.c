/* dice-roller: rolls dice such as "2d6+1" and shows them one by one.
 *
 * Receives {"dice": "2d6+1", "seed": 7}; the seed is optional and makes the roll repeatable.
 * Every event is one line of JSON on standard output, flushed at once.
 */
#include <stdint.h>
#include <time.h>

#include "narratoria.h"

typedef struct { long count, sides, bonus; } throw_of;

static int fail(const char *code, const char *message) {
    printf("{\"version\":\"0\",\"type\":\"error\",\"errorCode\":\"%s\",\"errorMessage\":", code);
    json_write(stdout, message);
    printf("}\n");
    fflush(stdout);
    printf("{\"version\":\"0\",\"type\":\"done\",\"ok\":false,\"summary\":");
    json_write(stdout, message);
    printf("}\n");
    fflush(stdout);
    return 0; /* 000 §5.3: a non-zero exit would mean that the protocol itself broke */
}

/* A number of at most four digits at *p, or -1. */
static long number(const char **p) {
    long value = 0;
    const char *from = *p;
    for (; **p >= '0' && **p <= '9'; ++*p)
        if (*p - from >= 4) return -1;
        else value = value * 10 + (**p - '0');
    return *p > from ? value : -1;
}

/* "2d6+1", "d20", "3d8-2": at most 100 dice of 2 to 1000 sides. */
static bool read_dice(const char *p, throw_of *dice) {
    dice->count = *p == 'd' ? 1 : number(&p);
    if (*p++ != 'd') return false;
    dice->sides = number(&p);
    dice->bonus = 0;
    if (*p == '+' || *p == '-') {
        long sign = *p++ == '+' ? 1 : -1, bonus = number(&p);
        if (bonus < 0) return false;
        dice->bonus = sign * bonus;
    }
    return *p == 0 && dice->count >= 1 && dice->count <= 100 && dice->sides >= 2 && dice->sides <= 1000;
}

/* A whole number from 0 to 2^53, the largest that every JSON reader keeps exact. */
static bool read_seed(json value, uint64_t *seed) {
    *seed = 0;
    if (!value.at || value.end - value.at > 16) return false;
    for (const char *p = value.at; p < value.end; p++) {
        if (*p < '0' || *p > '9') return false;
        *seed = *seed * 10 + (uint64_t)(*p - '0');
    }
    return *seed <= UINT64_C(1) << 53;
}

static uint64_t chance(void) {
    uint64_t seed = (uint64_t)time(NULL);
    FILE *source = fopen("/dev/urandom", "rb");
    if (source) {
        if (fread(&seed, sizeof seed, 1, source) != 1) seed ^= (uint64_t)clock();
        fclose(source);
    }
    return seed;
}

static uint64_t next_random(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static long roll(uint64_t *state, uint64_t sides) {
    uint64_t fair = UINT64_MAX - UINT64_MAX % sides, drawn; /* beyond it, low faces would come too often */
    do drawn = next_random(state);
    while (drawn >= fair);
    return (long)(drawn % sides) + 1;
}

int main(void) {
    size_t length;
    char *text = json_read_all(stdin, &length), dice_text[32];
    if (!text) return fail("REQUEST_TOO_LARGE", "The request does not fit in memory; send less than 64 MiB.");
    json request = length ? json_parse(text, length) : json_parse("{}", 2);
    if (!request.at) return fail("INVALID_REQUEST", "The request is not JSON; send {\"input\": {\"dice\": \"2d6\"}}.");
    json input = json_member(request, "input");
    if (json_kind(request) != '{' || (input.at && json_kind(input) != '{'))
        return fail("INVALID_REQUEST", "The request has no \"input\" object.");

    throw_of dice;
    if (!json_string(json_member(input, "dice"), dice_text, sizeof dice_text) || !read_dice(dice_text, &dice))
        return fail("INVALID_INPUT", "\"dice\" must be like \"2d6+1\": up to 100 dice of 2 to 1000 sides, then + or - a bonus.");
    uint64_t state;
    json seed = json_member(input, "seed");
    if (!seed.at) state = chance();
    else if (!read_seed(seed, &state)) return fail("INVALID_INPUT", "\"seed\" must be a whole number from 0 to 2^53.");
    free(text);

    long shown[100], total = dice.bonus;
    printf("{\"version\":\"0\",\"type\":\"log\",\"level\":\"info\",\"message\":\"Rolling %s...\",\"fields\":{\"progress\":0}}\n",
           dice_text);
    fflush(stdout);
    for (long i = 0; i < dice.count; i++) {
        total += shown[i] = roll(&state, (uint64_t)dice.sides);
        printf("{\"version\":\"0\",\"type\":\"log\",\"level\":\"info\",\"message\":\"A d%ld shows %ld.\","
               "\"fields\":{\"progress\":%.2f}}\n", dice.sides, shown[i], (double)(i + 1) / (double)dice.count);
        fflush(stdout);
    }
    printf("{\"version\":\"0\",\"type\":\"state_patch\",\"patch\":{\"lastRoll\":{\"dice\":\"%s\",\"shown\":[", dice_text);
    for (long i = 0; i < dice.count; i++) printf("%s%ld", i ? "," : "", shown[i]);
    printf("],\"total\":%ld}}}\n", total);
    fflush(stdout);
    printf("{\"version\":\"0\",\"type\":\"done\",\"ok\":true,\"summary\":\"%s: %ld.\"}\n", dice_text, total);
    fflush(stdout);
    return 0;
}
