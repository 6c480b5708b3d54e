// Package s3payload keeps payloads in a bucket of S3, or of what speaks as S3 does.
//
// # The bucket
//
//	PREFIX/submitter/JOB/SHA256       what the submitter of a job wrote
//	PREFIX/agent/AGENT/JOB/SHA256     what an agent wrote
//	PREFIX/incoming/...               what is being written, of more than a part
//
// The writer stands before the job, so that a role can be allowed to write under one name and no other. Names of jobs and
// agents are parts of keys as they are.
//
// # Writing
//
// Of what comes from a reader the hash is known at its end. What fits a part is one PutObject with its hash, which the store
// checks. What does not goes up in parts under a key that nobody reads, and gets its name by CopyObject, which hashes it
// again at the store. So what has its name is whole, and memory holds one part.
//
// # What goes
//
// It deletes nothing that has its name: the bucket's lifecycle does, Days after it was written or kept last, and takes what
// was begun under incoming and left. Keep makes young, by a copy onto itself, what is older than Renew. What the lifecycle
// may take any moment is not there.
//
// # Rights
//
// Of what is not there, who may not list the bucket hears that it is denied: so it is with S3.
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
	// DoorTime is for how long a door is open. What has begun by then may come to its end.
	DoorTime = 15 * time.Minute

	// cleanUp is how long it may take to take back what was begun, for a caller who may have given up.
	cleanUp = 10 * time.Second
	// margin is how long before its end nobody counts any more on what the lifecycle takes.
	margin = 24 * time.Hour
)

// Config says where a Store keeps what.
type Config struct {
	Client *s3.Client
	Bucket string
	// Prefix begins every key: the name of a stack. It has no slash.
	Prefix string
	// Days is after how many days the bucket's lifecycle takes what nobody has written or kept; 0: never.
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

// New makes a Store. It asks nothing of the bucket yet.
func New(c Config) *Store {
	if c.Now == nil {
		c.Now = time.Now
	}
	// What is read is hashed here, and not by the SDK a second time.
	c.Client = s3.New(c.Client.Options(), func(o *s3.Options) {
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	})
	presign := s3.NewPresignClient(c.Client, s3.WithPresignExpires(DoorTime), s3.WithPresignClientFromClientOptions(func(o *s3.Options) {
		// Nothing is sent, so there is nothing to count, and what counts would want what sends to be there.
		o.APIOptions = nil
	}))
	return &Store{config: c, presign: presign}
}

// writer is how keys name who wrote.
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

// Open reads bytes; see payload.Store. Of a part nothing says that it is what was written but its length and the store.
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
		_ = out.Body.Close() // Nothing of it was wanted.
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
	if s.ends(age) {
		return fmt.Errorf("%w: nobody has kept it for %d days", payload.ErrNotFound, s.config.Days)
	}
	return s.copy(ctx, key, key, p.SHA256)
}

// ends reports whether the lifecycle may take what has this age.
func (s *Store) ends(age time.Duration) bool {
	return age > time.Duration(s.config.Days)*24*time.Hour-margin
}

// head says for how long a payload has been there, with the length that p says and no other hash, where the store has one.
func (s *Store) head(ctx context.Context, key string, p makegood.Payload) (age time.Duration, err error) {
	out, err := s.config.Client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.config.Bucket, Key: &key, ChecksumMode: types.ChecksumModeEnabled})
	switch {
	case err != nil:
		return 0, err
	case aws.ToInt64(out.ContentLength) != p.Bytes:
		return 0, otherLength(aws.ToInt64(out.ContentLength))
	case isOther(out.ChecksumSHA256, out.ChecksumType, p.SHA256):
		return 0, fmt.Errorf("%w: the store has another hash of it", payload.ErrAltered)
	}
	return s.config.Now().Sub(aws.ToTime(out.LastModified)), nil
}

// isOther reports whether what a store says of the whole of an object is another hash. Where it says nothing, it is not.
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
