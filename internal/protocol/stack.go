package protocol

// The outputs of a stack with the addresses of its doors.
const (
	SubmitOutput  = "SubmitUrl"
	ReadOutput    = "ReadUrl"
	OperateOutput = "OperateUrl"
	// CompleteOutput exists where the stack has links (CompletionLinks).
	CompleteOutput = "CompleteUrl"
)

// HostSuffix ends the URL by which a *api.UnreachableError names a stack: https://shop-prod.stack. Requests go to the
// doors, each with its own address.
const HostSuffix = ".stack"
