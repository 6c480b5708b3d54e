//go:build race

package modelcheck

const raced = true
