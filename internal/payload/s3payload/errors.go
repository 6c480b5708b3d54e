package s3payload

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/smithy-go"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/makegood-dev/makegood/internal/payload"
)

// meaning says in the words of the contract what a store refused with. What it has no word for stays as it is: that may be
// tried again.
func meaning(err error) error {
	var response *awshttp.ResponseError
	if !errors.As(err, &response) {
		return err
	}
	code := ""
	var said smithy.APIError
	if errors.As(err, &said) {
		code = said.ErrorCode()
	}
	switch status := response.HTTPStatusCode(); {
	// Without a bucket nothing is there either; but who made the mistake is not whoever refers to a payload.
	case status == http.StatusNotFound && code != "NoSuchBucket" && code != "NoSuchUpload":
		return fmt.Errorf("%w: %w", payload.ErrNotFound, err)
	// A clock that is wrong is put right.
	case status == http.StatusForbidden && code != "RequestTimeTooSkewed":
		return fmt.Errorf("%w: %w", payload.ErrDenied, err)
	}
	return err
}
