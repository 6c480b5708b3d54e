// Package functions runs the Lambda functions as Lambda does: as processes that ask the Runtime
// API for events.
package functions
