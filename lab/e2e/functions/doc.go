// Package functions holds tests of the Lambda functions, run as Lambda runs them: as processes that ask the Runtime
// API for events.
package functions
