package stack

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/makegood-dev/makegood/client/doors"
)

// Error says why AWS, or the lack of it, stopped the command, and what to do next.
type Error struct {
	// Usage: no request was made, and none can be until the usage is mended. Otherwise the outcome of the request is
	// unknown; it may be made again without harm.
	Usage bool
	err   error
	next  string
}

// Error says what went wrong, and on a second line what to do next.
func (e *Error) Error() string { return fmt.Sprintf("%v\n%s", e.err, e.next) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// advice is what to do about an answer of AWS.
type advice struct {
	codes []string
	usage bool
	next  string
}

// allAdvice is in the order of the requests.
func allAdvice() []advice {
	return []advice{
		{
			[]string{"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"},
			false,
			"the credentials do not allow it; docs/doors.md lists the permissions, and how to do without CloudFormation",
		},
		{
			[]string{"ExpiredToken", "ExpiredTokenException", "RequestExpired"},
			false,
			"the credentials have expired: log in again (aws sso login), and ask again",
		},
		{
			[]string{"InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "InvalidSignatureException"},
			true,
			"AWS does not know the credentials: see AWS_PROFILE, and the machine's clock",
		},
	}
}

// explained says what to do about an error of AWS.
func explained(err error, name, region string) *Error {
	if known, is := errors.AsType[*Error](err); is {
		return known
	}
	wrapped := fmt.Errorf("stack %s in %s: %w", name, region, err)
	var api smithy.APIError
	if !errors.As(err, &api) {
		if errors.Is(err, doors.ErrNoDoors) {
			return &Error{Usage: true, err: wrapped, next: "was it deployed from a template.yaml of Makegood that has doors? Deploy it again from this version's"}
		}
		return &Error{err: wrapped, next: "AWS cannot be reached, or does not answer as it should; ask again"}
	}
	if api.ErrorCode() == "ValidationError" && strings.Contains(api.ErrorMessage(), "does not exist") {
		return &Error{Usage: true, err: wrapped, next: "is the name right? AWS_REGION and AWS_PROFILE say where it is looked for"}
	}
	for _, a := range allAdvice() {
		if slices.Contains(a.codes, api.ErrorCode()) {
			return &Error{Usage: a.usage, err: wrapped, next: a.next}
		}
	}
	return &Error{err: wrapped, next: "no request reached the stack yet; ask again"}
}
