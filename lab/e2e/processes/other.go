//go:build !linux

// Package processes runs a stack on a stand-in, on Linux alone: what stands for Lambda needs its processes.
package processes
