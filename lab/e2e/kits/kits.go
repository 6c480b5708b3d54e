// Package kits holds the kits for agents, in Go, Python and TypeScript, to the same behaviour: its tests are a scripted
// engine that duplicates, delays, withdraws, expires and breaks off, and an agent written with each kit, as a process.
package kits
