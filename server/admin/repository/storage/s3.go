package storage

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// s3Storage keeps objects in a bucket.
type s3Storage struct {
	client         *minio.Client
	bucket, prefix string
}

// openS3 takes the keys of a file in the format that AWS's own tools have
// (~/.aws/credentials), or of the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY).
func openS3(u *url.URL) (Storage, error) {
	query := u.Query()
	keys := credentials.NewEnvAWS()
	if file := query.Get("credentials"); file != "" {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("credentials: %w", err)
		}
		keys = credentials.NewFileAWSCredentials(file, "")
		if _, err := keys.GetWithContext(nil); err != nil { // it quotes the file
			return nil, fmt.Errorf("credentials: cannot read keys of %s: give a file like ~/.aws/credentials, with aws_access_key_id and aws_secret_access_key below [default]", file)
		}
	}
	client, err := minio.New(u.Host, &minio.Options{Creds: keys, Secure: query.Get("insecure") != "true", Region: cmp.Or(query.Get("region"), "us-east-1"),
		BucketLookup: minio.BucketLookupAuto, MaxRetries: 3, Transport: transport()})
	if err != nil {
		return nil, err
	}
	bucket, prefix, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	return &s3Storage{client, bucket, prefix}, nil
}

// transport gives up on a server that does not answer.
func transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = time.Minute
	return t
}

func (s *s3Storage) key(name string) string { return path.Join(s.prefix, name) }

// Put makes the server compare what it got with its MD5.
func (s *s3Storage) Put(ctx context.Context, name string, content []byte) error {
	_, err := s.client.PutObject(ctx, s.bucket, s.key(name), bytes.NewReader(content), int64(len(content)),
		minio.PutObjectOptions{ContentType: "application/octet-stream", SendContentMd5: true, DisableMultipart: true})
	return s.named(err)
}

func (s *s3Storage) Get(ctx context.Context, name string, limit int64) ([]byte, error) {
	o, err := s.client.GetObject(ctx, s.bucket, s.key(name), minio.GetObjectOptions{})
	if err != nil {
		return nil, s.named(err)
	}
	defer o.Close()
	content, err := readLimited(o, limit)
	return content, s.named(err)
}

func (s *s3Storage) List(ctx context.Context, folder string, f func(Object) error) error {
	ctx, cancel := context.WithCancel(ctx) // ends the list where f does
	defer cancel()
	prefix := s.key(folder) + "/"
	for o := range s.client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if o.Err != nil {
			return s.named(o.Err)
		}
		name := strings.TrimPrefix(strings.TrimPrefix(o.Key, s.prefix), "/")
		if err := f(Object{name, o.Size, o.LastModified}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (s *s3Storage) Remove(ctx context.Context, name string) error {
	return s.named(s.client.RemoveObject(ctx, s.bucket, s.key(name), minio.RemoveObjectOptions{}))
}

func (s *s3Storage) Close() error { return nil }

// named gives errors of the store the words of their mend.
func (s *s3Storage) named(err error) error {
	switch minio.ToErrorResponse(err).Code {
	case "NoSuchKey":
		return errors.Join(ErrNotFound, err)
	case "NoSuchBucket":
		return fmt.Errorf("there is no bucket %s: make it", s.bucket)
	case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch":
		return fmt.Errorf("the object store refuses the credentials: %w", err)
	}
	return err
}
