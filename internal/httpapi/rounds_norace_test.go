//go:build !race

package httpapi_test

// rounds is how many rounds are played.
const rounds = 10_000
