//go:build linux

package lambdahost

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// MaxHops is how often a function is invoked in one chain of requests before a host that terminates recursive
// loops refuses the next. AWS says "approximately 16".
const MaxHops = 16

// lineageField is the part of the X-Ray header in which Lambda counts.
const lineageField = "Lineage="

// extend returns the X-Ray header of an invocation that a request with this header brings about, and which one of
// this function it is in its chain. The field is HASH:N|HASH:N, as Lambda has it: a hash of the resource, and a
// count. What the hash is of AWS does not say; here it is the function's name.
func extend(trace, function string) (header string, hops int) {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(function)) // never fails
	mine := fmt.Sprintf("%08x", hash.Sum32())
	hops = 1
	var rest, lineage []string
	for field := range strings.SplitSeq(trace, ";") {
		chain, ok := strings.CutPrefix(field, lineageField)
		if !ok && field != "" {
			rest = append(rest, field)
		}
		for one := range strings.SplitSeq(chain, "|") {
			resource, count, _ := strings.Cut(one, ":")
			n, err := strconv.Atoi(count)
			switch {
			case !ok || err != nil:
			case resource == mine:
				hops = n + 1
			default:
				lineage = append(lineage, one)
			}
		}
	}
	if len(rest) == 0 {
		rest = []string{"Root=1-00000000-000000000000000000000000", "Parent=0000000000000000", "Sampled=0"}
	}
	lineage = append(lineage, mine+":"+strconv.Itoa(hops))
	return strings.Join(rest, ";") + ";" + lineageField + strings.Join(lineage, "|"), hops
}
