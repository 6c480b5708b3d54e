//go:build race

package makegoodtest_test

const raced = true
