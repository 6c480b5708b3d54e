package s3payload

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/smithy-go"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/makegood-dev/makegood/internal/payload"
)

// meaning translates a store's refusal to an error of the contract. Others stay as they are: the request may be
// repeated.
func meaning(err error) error {
	var response *awshttp.ResponseError
	if !errors.As(err, &response) {
		return err
	}
	code := ""
	if said, is := errors.AsType[smithy.APIError](err); is {
		code = said.ErrorCode()
	}
	switch status := response.HTTPStatusCode(); {
	// A missing bucket is 404 too, but is a mistake in the configuration and not in a reference.
	case status == http.StatusNotFound && code != "NoSuchBucket" && code != "NoSuchUpload":
		return fmt.Errorf("%w: %w", payload.ErrNotFound, err)
	// A clock that is wrong is put right.
	case status == http.StatusForbidden && code != "RequestTimeTooSkewed":
		return fmt.Errorf("%w: %w", payload.ErrDenied, err)
	}
	return err
}
