//go:build race

package httpapi_test

// rounds is how many rounds are played: under the race detector each takes ten times as long.
const rounds = 1_000
