package s3payload

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/payload"
)

// WriteDoor allows one upload; see payload.Doors. Length and hash are signed headers, and S3 refuses other bytes. It is
// open for DoorTime, or until the credentials that signed it expire.
func (s *Store) WriteDoor(ctx context.Context, at payload.Place, w payload.Written) (payload.Door, error) {
	d, err := s.writeDoor(ctx, at, w)
	if err != nil {
		return payload.Door{}, fmt.Errorf("a door for a payload of job %s: %w", at.Job, meaning(err))
	}
	return d, nil
}

func (s *Store) writeDoor(ctx context.Context, at payload.Place, w payload.Written) (d payload.Door, err error) {
	if w.Bytes > makegood.MaxLargePayloadBytes {
		return d, payload.ErrTooLarge
	}
	p := makegood.Payload{SHA256: w.SHA256, Bytes: w.Bytes, By: at.By}
	if err := errors.Join(at.Check(), p.Check()); err != nil {
		return d, err
	}
	key := s.key(at, w.SHA256)
	// An object that differs from its name is written anew.
	err = s.keep(ctx, key, p)
	switch wrong := meaning(err); {
	case err == nil:
		return d, nil
	case !errors.Is(wrong, payload.ErrNotFound) && !errors.Is(wrong, payload.ErrAltered):
		return d, err
	}
	request, err := s.presign.PresignPutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.config.Bucket, Key: &key, ContentLength: &w.Bytes, ChecksumSHA256: aws.String(checksumOf(w.SHA256)),
	})
	return s.door(request, err)
}

// ReadDoor allows reading a payload; see payload.Doors. The answer is an attachment.
func (s *Store) ReadDoor(ctx context.Context, job string, p makegood.Payload) (payload.Door, error) {
	d, err := s.readDoor(ctx, job, p)
	if err != nil {
		return payload.Door{}, fmt.Errorf("a door to %v of job %s: %w", p, job, meaning(err))
	}
	return d, nil
}

func (s *Store) readDoor(ctx context.Context, job string, p makegood.Payload) (d payload.Door, err error) {
	key, err := s.find(job, p)
	if err != nil {
		return d, err
	}
	if _, err := s.head(ctx, key, p); err != nil {
		return d, err
	}
	in := &s3.GetObjectInput{Bucket: &s.config.Bucket, Key: &key, ResponseContentDisposition: aws.String("attachment")}
	if p.Type != "" {
		in.ResponseContentType = &p.Type
	}
	return s.door(s.presign.PresignGetObject(ctx, in))
}

// door is a request that was signed.
func (s *Store) door(request *v4.PresignedHTTPRequest, err error) (payload.Door, error) {
	if err != nil {
		return payload.Door{}, err
	}
	header := http.Header{}
	for name, values := range request.SignedHeader {
		if name != "Host" {
			header[http.CanonicalHeaderKey(name)] = values
		}
	}
	return payload.Door{Method: request.Method, URL: request.URL, Header: header, Ends: s.config.Now().Add(DoorTime)}, nil
}
