package sam

import (
	"fmt"
	"regexp"
	"strings"
)

// Tables and keys of TOML, as far as samconfig.toml has them: a reader of all of TOML is not worth a dependency.
var (
	tableLine     = regexp.MustCompile(`^\[(\w+)\.(\w+)\.parameters\]$`)
	overridesLine = regexp.MustCompile(`^parameter_overrides = \[(.*)\]$`)
	overridePart  = regexp.MustCompile(`^"(\w+)=([^"]*)"$`)
)

// Overrides returns the parameters that each environment of a samconfig.toml sets.
func Overrides(samconfig string) (map[string]map[string]string, error) {
	all := map[string]map[string]string{}
	environment := ""
	for line := range strings.SplitSeq(samconfig, "\n") {
		if table := tableLine.FindStringSubmatch(line); table != nil {
			environment = table[1]
		}
		parts := overridesLine.FindStringSubmatch(line)
		if parts == nil {
			continue
		}
		all[environment] = map[string]string{}
		for part := range strings.SplitSeq(parts[1], ", ") {
			pair := overridePart.FindStringSubmatch(part)
			if pair == nil {
				return nil, fmt.Errorf("samconfig.toml, %s: %s is no parameter and its value", environment, part)
			}
			all[environment][pair[1]] = pair[2]
		}
	}
	return all, nil
}
