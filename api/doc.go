// Package api has the words of a program that works with jobs, wherever they are: what it asks (Filter, Request,
// StepRef), what it gets (Listed, Page, Groups), the errors, and the interfaces that an engine, a client and a folder
// share (Jobs, Schedules, Holds, Payloads, Agents).
//
// It imports the root package alone. Package client speaks HTTP in these words, package engine answers in the process.
package api
