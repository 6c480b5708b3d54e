package s3payload

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/makegood-dev/makegood/internal/payload"
)

// Write stores bytes; see payload.Store. It holds PartBytes in memory.
func (s *Store) Write(ctx context.Context, at payload.Place, from io.Reader) (payload.Written, error) {
	w, err := s.write(ctx, at, from)
	if err != nil {
		return payload.Written{}, fmt.Errorf("write a payload of job %s: %w", at.Job, meaning(err))
	}
	return w, nil
}

func (s *Store) write(ctx context.Context, at payload.Place, from io.Reader) (w payload.Written, err error) {
	if err := at.Check(); err != nil {
		return w, err
	}
	limited := payload.Limit(from)
	part := make([]byte, PartBytes)
	n, last, err := fill(limited, part)
	if err != nil {
		return w, err
	}
	if !last {
		return s.writeParts(ctx, at, limited, part)
	}
	w = limited.Written()
	key, checksum := s.key(at, w.SHA256), checksumOf(w.SHA256)
	_, err = s.config.Client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.config.Bucket, Key: &key, Body: bytes.NewReader(part[:n]), ChecksumSHA256: &checksum,
	})
	return w, err
}

// fill reads until a part is full, or the reader has ended. It is not io.ReadFull, which has one error for the end of a
// reader and for a broken one.
func fill(from io.Reader, part []byte) (n int, last bool, err error) {
	for n < len(part) {
		m, err := from.Read(part[n:])
		n += m
		if errors.Is(err, io.EOF) {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}

// writeParts stores more bytes than a part; the first part is read already.
func (s *Store) writeParts(ctx context.Context, at payload.Place, limited *payload.Limited, part []byte) (w payload.Written, err error) {
	scratch := s.config.Prefix + "/incoming/" + writer(at.By) + "/" + rand.Text()
	if err := s.upload(ctx, scratch, limited, part); err != nil {
		return w, err
	}
	w = limited.Written()
	err = s.copy(ctx, scratch, s.key(at, w.SHA256), w.SHA256)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
	defer cancel()
	// If this fails, the lifecycle deletes it.
	_, _ = s.config.Client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.config.Bucket, Key: &scratch})
	return w, err
}

// upload puts the bytes of a reader under a key, part by part. After an error there is no object.
func (s *Store) upload(ctx context.Context, key string, from io.Reader, part []byte) error {
	begun, err := s.config.Client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &s.config.Bucket, Key: &key, ChecksumAlgorithm: types.ChecksumAlgorithmCrc32,
	})
	if err != nil {
		return err
	}
	parts, err := s.uploadParts(ctx, key, begun.UploadId, from, part)
	if err == nil {
		_, err = s.config.Client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
			Bucket: &s.config.Bucket, Key: &key, UploadId: begun.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
		})
	}
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
	defer cancel()
	// If this fails, the lifecycle deletes it.
	_, _ = s.config.Client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.config.Bucket, Key: &key, UploadId: begun.UploadId})
	return err
}

// uploadParts sends a part that is full, and all that follow.
func (s *Store) uploadParts(ctx context.Context, key string, upload *string, from io.Reader, part []byte) (parts []types.CompletedPart, err error) {
	n, last := len(part), false
	for number := int32(1); ; number++ {
		sent, err := s.config.Client.UploadPart(ctx, &s3.UploadPartInput{
			Bucket: &s.config.Bucket, Key: &key, UploadId: upload, PartNumber: &number, Body: bytes.NewReader(part[:n]),
			ChecksumAlgorithm: types.ChecksumAlgorithmCrc32,
		})
		if err != nil {
			return nil, err
		}
		parts = append(parts, types.CompletedPart{PartNumber: aws.Int32(number), ETag: sent.ETag, ChecksumCRC32: sent.ChecksumCRC32})
		if last {
			return parts, nil
		}
		if n, last, err = fill(from, part); err != nil {
			return nil, err
		}
		if n == 0 {
			return parts, nil
		}
	}
}

// copy gives an object a name, or renews it under its own. The store hashes the copied bytes.
func (s *Store) copy(ctx context.Context, from, to, sha256 string) error {
	out, err := s.config.Client.CopyObject(ctx, &s3.CopyObjectInput{
		Bucket: &s.config.Bucket, Key: &to, CopySource: aws.String(url.PathEscape(s.config.Bucket) + "/" + (&url.URL{Path: from}).EscapedPath()),
		// Without that S3 refuses a copy of an object onto itself.
		MetadataDirective: types.MetadataDirectiveReplace,
		ChecksumAlgorithm: types.ChecksumAlgorithmSha256,
	})
	if err != nil {
		return err
	}
	if r := out.CopyObjectResult; r != nil && isOther(r.ChecksumSHA256, r.ChecksumType, sha256) {
		return fmt.Errorf("the store has hashed other bytes as %s", to)
	}
	return nil
}
