// Package s3payload keeps payloads in a bucket of S3, or of a compatible store.
//
// # The bucket
//
//	PREFIX/submitter/JOB/SHA256       payloads of the submitter of a job
//	PREFIX/agent/AGENT/JOB/SHA256     payloads of an agent
//	PREFIX/incoming/...               uploads under way, of more than a part
//
// The writer stands before the job, so that a role can be allowed to write under one name and no other. Names of jobs
// and agents are parts of keys as they are.
//
// # Writing
//
// The hash of a reader's bytes is known at the end. Bytes that fit a part are one PutObject with their hash, which the
// store checks. More go up in parts under a key that is never read, and get their name by CopyObject, for which the
// store hashes them again. So a named object is whole, and memory holds one part.
//
// # Deletion
//
// It deletes no named object: the bucket's lifecycle does, Days after it was last written or kept, and also deletes
// abandoned uploads under incoming. Keep renews objects older than Renew, by a copy onto themselves. An object that the
// lifecycle may delete any moment counts as missing.
//
// # Rights
//
// For a missing object a caller without the right to list the bucket gets ErrDenied, as S3 answers.
package s3payload

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/payload"
)

var (
	_ payload.Store = (*Store)(nil)
	_ payload.Doors = (*Store)(nil)
)

const (
	// PartBytes is how much of a payload is in memory while it is written: the smallest part that S3 takes.
	PartBytes = 5 << 20
	// DoorTime is for how long a door is open. A request that has begun by then may be completed.
	DoorTime = 15 * time.Minute

	// cleanUp is how long deleting an abandoned upload may take, for a caller that may have given up.
	cleanUp = 10 * time.Second
	// margin is how long before the lifecycle may delete an object it counts as missing.
	margin = 24 * time.Hour
)

// Config says where a Store keeps what.
type Config struct {
	Client *s3.Client
	Bucket string
	// Prefix begins every key: the name of a stack. It has no slash.
	Prefix string
	// Days is after how many days without a write or Keep the bucket's lifecycle deletes an object; 0: never.
	Days int
	// Renew is the age beyond which Keep makes a payload young again, where the lifecycle takes any; zero: it always does.
	Renew time.Duration
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Store keeps payloads in a bucket.
type Store struct {
	config  Config
	presign *s3.PresignClient
}

// New makes a Store. It makes no request to the bucket yet.
func New(c Config) *Store {
	if c.Now == nil {
		c.Now = time.Now
	}
	// This package hashes what it reads; the SDK need not do so again.
	c.Client = s3.New(c.Client.Options(), func(o *s3.Options) {
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	})
	presign := s3.NewPresignClient(c.Client, s3.WithPresignExpires(DoorTime), s3.WithPresignClientFromClientOptions(func(o *s3.Options) {
		// Presigning makes no request, so it is not metered; the metering middleware would need a transport.
		o.APIOptions = nil
	}))
	return &Store{config: c, presign: presign}
}

// writer is the writer's part of a key.
func writer(by string) string {
	if by == "" {
		return "submitter"
	}
	return "agent/" + by
}

func (s *Store) key(at payload.Place, sha256 string) string {
	return s.config.Prefix + "/" + writer(at.By) + "/" + at.Job + "/" + sha256
}

// find returns the key of a payload that can be.
func (s *Store) find(job string, p makegood.Payload) (key string, err error) {
	at := payload.Place{Job: job, By: p.By}
	if err := at.Check(); err != nil {
		return "", fmt.Errorf("%w: %w", payload.ErrNotFound, err)
	}
	if err := p.Check(); err != nil {
		return "", fmt.Errorf("%w: %w", payload.ErrNotFound, err)
	}
	return s.key(at, p.SHA256), nil
}

// Open reads bytes; see payload.Store. A part is checked by its length only; for the rest it relies on the store.
func (s *Store) Open(ctx context.Context, job string, p makegood.Payload, offset, n int64) (io.ReadCloser, error) {
	r, err := s.open(ctx, job, p, offset, n)
	if err != nil {
		return nil, fmt.Errorf("open %v of job %s: %w", p, job, meaning(err))
	}
	return r, nil
}

func (s *Store) open(ctx context.Context, job string, p makegood.Payload, offset, n int64) (io.ReadCloser, error) {
	key, err := s.find(job, p)
	if err != nil {
		return nil, err
	}
	if err := payload.CheckRange(p, offset, n); err != nil {
		return nil, err
	}
	if n < 0 {
		n = p.Bytes - offset
	}
	r, err := s.get(ctx, key, p, offset, n)
	if err != nil || n < p.Bytes {
		return r, err
	}
	return payload.Checked(p, r), nil
}

// get reads n bytes of an object that has as many as p says.
func (s *Store) get(ctx context.Context, key string, p makegood.Payload, offset, n int64) (io.ReadCloser, error) {
	if n == 0 {
		// No range of S3 is empty.
		_, err := s.head(ctx, key, p)
		return io.NopCloser(strings.NewReader("")), err
	}
	in := &s3.GetObjectInput{Bucket: &s.config.Bucket, Key: &key}
	if n < p.Bytes {
		in.Range = aws.String(fmt.Sprintf("bytes=%d-%d", offset, offset+n-1))
	}
	out, err := s.config.Client.GetObject(ctx, in)
	if err != nil {
		return nil, err
	}
	has := aws.ToInt64(out.ContentLength)
	if in.Range != nil {
		_, total, _ := strings.Cut(aws.ToString(out.ContentRange), "/")
		if has, err = strconv.ParseInt(total, 10, 64); err != nil {
			has = -1 // It gave the whole, or does not say of how many this is a part.
		}
	}
	if has != p.Bytes {
		_ = out.Body.Close() // The body is not needed.
		return nil, otherLength(has)
	}
	return out.Body, nil
}

func otherLength(has int64) error { return fmt.Errorf("%w: it has %d bytes", payload.ErrAltered, has) }

// Keep makes a payload young again where it is old; see payload.Store.
func (s *Store) Keep(ctx context.Context, job string, p makegood.Payload) error {
	key, err := s.find(job, p)
	if err == nil {
		err = s.keep(ctx, key, p)
	}
	if err != nil {
		return fmt.Errorf("keep %v of job %s: %w", p, job, meaning(err))
	}
	return nil
}

func (s *Store) keep(ctx context.Context, key string, p makegood.Payload) error {
	age, err := s.head(ctx, key, p)
	if err != nil || s.config.Days == 0 || age < s.config.Renew {
		return err
	}
	// The lifecycle may have decided already, and not acted.
	if age > time.Duration(s.config.Days)*24*time.Hour-margin {
		return fmt.Errorf("%w: no job has kept it for %d days", payload.ErrNotFound, s.config.Days)
	}
	return s.copy(ctx, key, key, p.SHA256)
}

// head returns the age of a payload, if it has the length of p, and the hash of p where the store has one.
func (s *Store) head(ctx context.Context, key string, p makegood.Payload) (age time.Duration, err error) {
	out, err := s.config.Client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.config.Bucket, Key: &key, ChecksumMode: types.ChecksumModeEnabled})
	switch {
	case err != nil:
		return 0, err
	case aws.ToInt64(out.ContentLength) != p.Bytes:
		return 0, otherLength(aws.ToInt64(out.ContentLength))
	case isOther(out.ChecksumSHA256, out.ChecksumType, p.SHA256):
		return 0, fmt.Errorf("%w: the store has another hash", payload.ErrAltered)
	}
	return s.config.Now().Sub(aws.ToTime(out.LastModified)), nil
}

// isOther reports whether a store has another hash of the whole object. Without a hash in the store it is false.
func isOther(checksum *string, of types.ChecksumType, sha256 string) bool {
	return checksum != nil && of != types.ChecksumTypeComposite && !strings.Contains(*checksum, "-") && *checksum != checksumOf(sha256)
}

// checksumOf writes a hash as S3 does.
func checksumOf(sha256 string) string {
	sum, err := hex.DecodeString(sha256)
	if err != nil {
		panic("s3payload: " + sha256 + " was not checked")
	}
	return base64.StdEncoding.EncodeToString(sum)
}
