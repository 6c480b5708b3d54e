//go:build !race

package embedded_test

const raced = false

func hoursOf(hours int) int { return hours }
