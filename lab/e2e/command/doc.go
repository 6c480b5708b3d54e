// Package command holds tests of the command on a deployed stack: the built binary, through the stack's doors, on
// stand-ins for AWS.
package command
