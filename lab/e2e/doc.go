// Package e2e runs the makegood command as a user does: the real program, as a process, against real
// HTTP servers, and kills it.
package e2e
