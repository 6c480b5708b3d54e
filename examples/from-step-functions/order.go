// Package order has the workflow order, which was a state machine of AWS Step Functions.
package order

import "embed"

// Files are the workflow files, which are those of the folder workflows.
//
//go:embed workflows
var Files embed.FS
