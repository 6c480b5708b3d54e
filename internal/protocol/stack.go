package protocol

// The outputs of a stack that say where its doors are.
const (
	SubmitOutput  = "SubmitUrl"
	ReadOutput    = "ReadUrl"
	OperateOutput = "OperateUrl"
	// CompleteOutput is there where the stack has links (CompletionLinks).
	CompleteOutput = "CompleteUrl"
)

// HostSuffix ends the URL by which a *api.UnreachableError names a stack: https://shop-prod.stack. Requests go
// to the doors, each with its own address.
const HostSuffix = ".stack"
