# json.awk: reads a request and prints what is in its "input", one `key<TAB>value` a line.
#
# Needs only awk, no jq. A value is printed as the JSON it was, so a string keeps its quotes and escapes and can be
# put back into an event unchanged; of an object or array only the first bracket is printed, of anything longer
# than 2500 bytes only "long". A request that cannot be used gives one line, `!<TAB>reason`.
#
# What it checks: quotes, brackets, escapes and UTF-8. What it does not: every comma. Run it with LC_ALL=C, so
# that it sees bytes. The text is cut at the double quotes: pieces lie outside and inside of strings by turns.

BEGIN { RS = "\"" }

problem { next }

inside {
    n = length($0)
    while (n > 0 && substr($0, n, 1) == "\\") n--
    escaped = (length($0) - n) % 2
    if (length(text) <= 2500) text = text $0 (escaped ? "\"" : "")
    if (escaped) next # the string goes on
    inside = 0
    end_of_string()
    next
}

{
    for (i = 1; i <= length($0); i++) structure(substr($0, i, 1))
    inside = 1
    text = ""
}

function structure(c) {
    if (c ~ /[^][{}:, \t\r\n]/) {
        if (length(word) <= 2500) word = word c
        return
    }
    if (word != "") { value(word); word = "" }
    if (c == "{" || c == "[") {
        value(c)
        opener[++depth] = c
        key[depth] = ""
        has_key[depth] = 0
    } else if (c == "}" || c == "]") {
        if (depth < 1 || opener[depth] != (c == "}" ? "{" : "[")) refuse("its brackets do not match")
        else depth--
    } else if (c == ":") has_key[depth] = 1
    else if (c == ",") has_key[depth] = 0
}

function end_of_string() {
    if (depth && opener[depth] == "{" && !has_key[depth]) key[depth] = text
    else if (length(text) > 2500) value("long")
    else if (!sound(text)) refuse("it holds a string that is not valid JSON text in UTF-8")
    else value("\"" text "\"")
}

function value(v) {
    if (depth == 0) {
        if (v != "{" || started++) refuse("it is not one JSON object")
    } else if (depth == 1 && key[1] == "input" && v != "{") {
        refuse("its \"input\" is not an object")
    } else if (depth == 2 && key[1] == "input" && key[2] ~ /^[A-Za-z_][A-Za-z0-9_]*$/) {
        found[++count] = key[2] "\t" (length(v) > 2500 ? "long" : v)
    }
}

function sound(s) {
    if (s ~ /[\001-\037]/) return 0
    gsub(/\\\\/, "_", s)
    gsub(/\\["\/bfnrt]/, "_", s)
    gsub(/\\u[dD][89abAB][0-9a-fA-F][0-9a-fA-F]\\u[dD][c-fC-F][0-9a-fA-F][0-9a-fA-F]/, "_", s)
    if (s ~ /\\u[dD][89a-fA-F]/) return 0 # half a surrogate pair is no character
    gsub(/\\u[0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F]/, "_", s)
    # The well-formed byte sequences of the Unicode standard, table 3-7.
    gsub(/\364[\200-\217][\200-\277][\200-\277]|\360[\220-\277][\200-\277][\200-\277]/, "_", s)
    gsub(/[\361-\363][\200-\277][\200-\277][\200-\277]/, "_", s)
    gsub(/\340[\240-\277][\200-\277]|\355[\200-\237][\200-\277]/, "_", s)
    gsub(/[\341-\354\356\357][\200-\277][\200-\277]|[\302-\337][\200-\277]/, "_", s)
    return s !~ /[\\\200-\377]/
}

function refuse(reason) { if (!problem) problem = reason }

END {
    if (word != "") value(word)
    # The last piece lies outside, and after every piece outside we expect one inside.
    if (NR && (depth || !started || !inside)) refuse("it is not complete JSON")
    if (problem) print "!\t" problem
    else for (i = 1; i <= count; i++) print found[i]
}
