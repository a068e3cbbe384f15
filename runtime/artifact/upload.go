package artifact

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
)

// Upload sends the first size bytes of f as Diego does: by POST, with their MD5
// in a header.
func (s *Store) Upload(ctx context.Context, to string, f *os.File, size int64) error {
	if err := (Source{URL: to}).check(); err != nil {
		return err
	}
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	sum := md5.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, size)); err != nil {
		return err
	}
	return retry(ctx, func() error { return s.post(ctx, to, io.NewSectionReader(f, 0, size), sum.Sum(nil)) })
}

func (s *Store) post(ctx context.Context, to string, body *io.SectionReader, sum []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, io.NopCloser(body))
	if err != nil {
		return permanent{withoutURL(err)}
	}
	req.ContentLength = body.Size()
	req.Header.Set("Content-Type", "application/octet-stream")
	req.Header.Set("Content-MD5", base64.StdEncoding.EncodeToString(sum))
	res, err := s.client.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20)) // so that the connection can be used again
	switch {
	case res.StatusCode/100 == 2:
		return nil
	case res.StatusCode >= 500:
		return fmt.Errorf("upload: the server answers %s", res.Status)
	}
	return permanent{fmt.Errorf("upload: the server answers %s", res.Status)}
}
