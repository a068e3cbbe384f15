package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/minio/minio-go/v7"
	keys "github.com/minio/minio-go/v7/pkg/credentials"
)

// object does "put KEY TEXT" or "get KEY" with the bucket photos, which it makes.
func object(ctx context.Context, c credentials, request string) (string, error) {
	client, err := minio.New(fmt.Sprintf("%s:%d", c.Host, c.Port), &minio.Options{Creds: keys.NewStaticV4(c.AccessKey, c.SecretKey, "")})
	if err != nil {
		return "", err
	}
	const bucket = "photos"
	verb, rest, _ := strings.Cut(request, " ")
	key, text, _ := strings.Cut(rest, " ")
	if verb == "put" {
		if there, err := client.BucketExists(ctx, bucket); err != nil || !there {
			if err := errors.Join(err, client.MakeBucket(ctx, bucket, minio.MakeBucketOptions{})); err != nil {
				return "", err
			}
		}
		_, err := client.PutObject(ctx, bucket, key, strings.NewReader(text), int64(len(text)), minio.PutObjectOptions{ContentType: "text/plain"})
		return "done", err
	}
	o, err := client.GetObject(ctx, bucket, key, minio.GetObjectOptions{})
	if err != nil {
		return "", err
	}
	defer o.Close()
	content, err := io.ReadAll(o)
	return string(content), err
}
