//go:build !race

package modelcheck

const raced = false
