package jq

// care names the check before a call of a builtin function.
type care int

const (
	// free: it costs no more than the steps that are counted.
	free care = iota + 1
	// textual: it goes through a text, and takes a part of a list at once.
	textual
	// counted: it goes through a text or a list once, or lists the contents.
	counted
	// through: it goes through all of a value, of any size.
	through
	// shallow: it makes a text or a list from one, a few times larger.
	shallow
	// deep: it goes through all of a value, as often as parts are referred to.
	deep
	// deepArg: as deep, and its argument is gone through as well.
	deepArg
	// pair: it may compare everything in its input with everything in its argument.
	pair
	// seek: it looks for its argument everywhere in its input.
	seek
	// matching: it matches a regular expression; gojq counts characters anew at each match. replacing replaces the matches.
	matching
	replacing
	// split: it makes a list of a text, or other values.
	split
	// path: its argument is a path, which may be created.
	path
	// set: as path, and the values along it are copied.
	set
	// picking and indexing are written anew, as INDEX and pick are defined, but with limits.
	picking
	indexing
	// combining goes through its lists over and over.
	combining
	// index: its argument is an index, which may be created.
	index
)

// builtins are the functions that an expression may call, with any number of arguments that gojq knows. Others are
// refused, so that a new version of gojq adds none unseen.
var builtins = map[string]care{
	"abs": free, "all": counted, "any": counted, "arrays": free, "booleans": free, "combinations": combining,
	"del": through, "empty": free, "endswith": free, "finites": free, "first": textual, "from_entries": counted,
	"gmtime": free, "has": free, "in": free, "infinite": free, "isempty": free, "isfinite": free,
	"isinfinite": free, "isnan": free, "isnormal": free, "iterables": free, "keys": counted, "last": textual,
	"length": textual, "limit": free, "map": counted, "map_values": counted, "mktime": free, "nan": free,
	"normals": free, "not": free, "nulls": free, "numbers": free, "objects": free, "path": free,
	"paths": through, "pick": picking, "range": free, "recurse": through, "repeat": free, "reverse": counted,
	"scalars": free, "select": free, "skip": free, "startswith": free, "strings": free,
	"to_entries": counted, "toboolean": counted, "tonumber": counted, "tostream": through, "truncate_stream": free,
	"type": free, "until": free, "utf8bytelength": free, "values": free, "walk": through, "while": free,
	"with_entries": counted,

	"acos": free, "acosh": free, "asin": free, "asinh": free, "atan": free, "atan2": free, "atanh": free,
	"cbrt": free, "ceil": free, "copysign": free, "cos": free, "cosh": free, "drem": free, "erf": free,
	"erfc": free, "exp": free, "exp10": free, "exp2": free, "expm1": free, "fabs": free, "fdim": free,
	"floor": free, "fma": free, "fmax": free, "fmin": free, "fmod": free, "frexp": free, "gamma": free,
	"hypot": free, "j0": free, "j1": free, "jn": free, "ldexp": free, "lgamma": free, "log": free,
	"log10": free, "log1p": free, "log2": free, "logb": free, "modf": free, "nearbyint": free,
	"nextafter": free, "nexttoward": free, "pow": free, "remainder": free, "rint": free, "round": free,
	"scalb": free, "scalbln": free, "significand": free, "sin": free, "sinh": free, "sqrt": free,
	"tan": free, "tanh": free, "tgamma": free, "trunc": free, "y0": free, "y1": free, "yn": free,

	"ascii_downcase": shallow, "ascii_upcase": shallow, "explode": split, "fromdate": shallow,
	"fromdateiso8601": shallow, "fromjson": split, "implode": shallow, "ltrim": shallow,
	"ltrimstr": shallow, "rtrim": shallow, "rtrimstr": shallow, "strftime": shallow,
	"strptime": shallow, "todate": shallow, "todateiso8601": shallow, "trim": shallow, "trimstr": shallow,

	"add": deepArg, "bsearch": deepArg, "delpaths": deepArg, "error": deepArg, "flatten": deep,
	"format": deep, "group_by": deepArg, "IN": deepArg, "INDEX": indexing, "JOIN": deepArg, "max": deep,
	"max_by": deepArg, "min": deep, "min_by": deepArg, "sort": deep, "sort_by": deepArg, "tojson": deep,
	"tostring": deep, "unique": deep, "unique_by": deepArg,

	"contains": pair, "index": seek, "indices": seek, "inside": pair, "join": pair, "rindex": seek,

	"capture": matching, "gsub": replacing, "match": matching, "scan": matching, "split": matching,
	"splits": matching, "sub": replacing, "test": matching,

	"getpath": path, "setpath": set, "nth": index, "transpose": deep,
}

// refused are the functions that gojq has and an expression may not call, with the reason.
var refused = map[string]string{
	"builtins":      "it depends on the version of gojq",
	"debug":         "it writes to the outside",
	"env":           "it reads the environment",
	"$ENV":          "it reads the environment",
	"fromstream":    "its memory cannot be bounded",
	"halt":          "it ends the program",
	"halt_error":    "it ends the program",
	"input":         "there is no other input; the job's is .input",
	"inputs":        "there is no other input; the job's is .input",
	"localtime":     "it reads the local time zone",
	"modulemeta":    "it reads files",
	"now":           "it reads the clock",
	"strflocaltime": "it reads the local time zone",

	"$__prog_args":      "it reads the command line",
	"get_search_list":   "it reads files",
	"input_filename":    "there is no other input; the job's is .input",
	"input_line_number": "there is no other input; the job's is .input",
	"stderr":            "it writes to the outside",
}
