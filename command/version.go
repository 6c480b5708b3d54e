package command

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// module is where this package is from.
const module = "github.com/makegood-dev/makegood"

// version says what a program was built of: its version and commit, that of Makegood if it is another's, and Go.
func version(info *debug.BuildInfo) string {
	text := unknown(info.Main.Version)
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if commit := settings["vcs.revision"]; commit != "" {
		text += ", commit " + commit
	}
	if settings["vcs.modified"] == "true" {
		text += " with changes"
	}
	for _, d := range info.Deps {
		if d.Path == module {
			text += ", makegood " + unknown(d.Version)
		}
	}
	return fmt.Sprintf("%s, %s, %s/%s", text, info.GoVersion, runtime.GOOS, runtime.GOARCH)
}

func unknown(version string) string {
	if version == "" {
		return "of no version"
	}
	return version
}

// ownVersion is that of this program.
func ownVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		// Only a program that was built without modules has no build information.
		return unknown("") + ", " + runtime.Version()
	}
	return version(info)
}
