// Package tidy holds the style of this repository as tests: who may import whom, what the pure core
// may not do, how long things may be, what must be documented. It has tests only.
//
// It reads the source files themselves. The cache of go test does not track files outside the module lab, so make lab,
// make quick and make whole run it with -count=1.
package tidy
