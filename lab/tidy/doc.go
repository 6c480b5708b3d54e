// Package tidy holds the style of this repository as tests: who may import whom, what the pure core
// may not do, how long things may be, what must be documented. It has tests only.
//
// It reads the source files themselves. go list would answer too, but the test cache cannot know
// when its answers change; it does know which files a test has read.
package tidy
