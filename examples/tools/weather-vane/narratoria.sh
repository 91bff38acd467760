# narratoria.sh: the kit for tools in bash: one file, bash 4 and awk, no jq.
#
#   . "$(dirname "${BASH_SOURCE[0]}")/narratoria.sh"
#   read_request                                    # fills the array `input`: key → JSON
#   emit_log info "Half way."
#   emit_patch '{"lamp":{"lit":true}}'
#   emit_done "The lamp is lit."
#
# A value of `input` is the JSON it was: a string keeps its quotes and escapes, so it can be put into an event unchanged.
# Of an object or array only the first bracket is kept, of anything longer than 2500 bytes only "long".

# emit TYPE FIELDS: writes an event of any type; FIELDS is JSON without the outer braces.
emit() { printf '{"version":"0","type":"%s",%s}\n' "$1" "$2"; }

# quoted TEXT: prints any text as a JSON string.
quoted() {
  local text=$1 code hex char
  text=${text//\\/\\\\} text=${text//\"/\\\"}
  text=${text//$'\n'/\\n} text=${text//$'\t'/\\t} text=${text//$'\r'/\\r}
  if [[ $text == *[[:cntrl:]]* ]]; then
    for code in {1..8} 11 12 {14..31}; do
      printf -v hex '%04x' "$code"
      printf -v char "\\x${hex:2}"
      text=${text//"$char"/"\\u$hex"}
    done
  fi
  printf '"%s"' "$text"
}

# emit_log LEVEL TEXT [FIELDS]: a line for whoever watches: debug, info, warn or error.
emit_log() { emit log "\"level\":\"$1\",\"message\":$(quoted "$2")${3:+,\"fields\":$3}"; }

# emit_progress FRACTION TEXT: moves the progress bar: 0 is the beginning, 1 the end.
emit_progress() { emit_log info "$2" "{\"progress\":$1}"; }

# emit_patch OBJECT: changes the state. Objects are merged, arrays replaced, null removes a key.
emit_patch() { emit state_patch "\"patch\":$1"; }

# emit_asset ID KIND MEDIATYPE PATH: shows a file that has been written; the path is absolute.
emit_asset() {
  emit asset "\"assetId\":$(quoted "$1"),\"kind\":$(quoted "$2"),\"mediaType\":$(quoted "$3"),\"path\":$(quoted "$4")"
}

# emit_choices TEXT…: offers the player choices.
emit_choices() {
  local text list=
  for text; do list+=${list:+,}$(quoted "$text"); done
  emit ui_event "\"event\":\"narrative_choice\",\"payload\":{\"choices\":[$list]}"
}

# emit_done TEXT: ends the call. With --json, TEXT is a JSON string already.
emit_done() {
  if [[ $1 == --json ]]; then emit done "\"ok\":true,\"summary\":$2"; else emit done "\"ok\":true,\"summary\":$(quoted "$1")"; fi
}

# refuse TEXT [CODE]: fails politely. The exit code is 0 all the same: any other means that the tool broke.
refuse() {
  emit error "\"errorCode\":\"${2-INVALID_INPUT}\",\"errorMessage\":$(quoted "$1")"
  emit done "\"ok\":false,\"summary\":$(quoted "$1")"
  exit 0
}

# read_request: reads the request into the array `input`, or refuses it.
declare -A input=()
read_request() {
  local key value
  while IFS=$'\t' read -r key value; do input[$key]=$value; done < <(LC_ALL=C awk "$NARRATORIA_AWK")
  [[ -z ${input['!']-} ]] || refuse "The request cannot be used: ${input['!']}."
}

# Prints what is in the "input" of a request, one `key<TAB>value` a line; of a request that cannot be used, `!<TAB>reason`.
# It checks quotes, brackets, escapes and UTF-8, not every comma. It sees bytes (LC_ALL=C). The text is cut at the double
# quotes: pieces lie outside and inside of strings by turns.
NARRATORIA_AWK='BEGIN { RS = "\"" }

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
}'
