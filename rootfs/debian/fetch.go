package debian

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	fetchTries   = 5 // in a row without a byte of progress
	stallTimeout = 30 * time.Second
)

// errNotFound is a mirror's 404: another try will not help.
var errNotFound = errors.New("not found on the mirror")

// A fetcher downloads files into a cache where each is named by its SHA256.
type fetcher struct {
	client *http.Client
	dir    string
	wait   time.Duration // before the second try; doubles
	got    func(n int64) // called for every piece that came over the network
}

// defaultClient has no overall timeout: fetch watches for stalls instead.
func defaultClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	t.ResponseHeaderTimeout = stallTimeout
	t.MaxIdleConnsPerHost = downloads
	t.DisableCompression = true // files are wanted as they are on the mirror
	return &http.Client{Transport: t}
}

// small downloads a document whose hash is not known beforehand.
func (f *fetcher) small(ctx context.Context, url string, limit int64) (raw []byte, err error) {
	err = f.retry(ctx, url, func(ctx context.Context) (bool, error) {
		body, _, err := f.request(ctx, url, 0)
		if err != nil {
			return false, err
		}
		defer body.Close()
		raw, err = readAllLimited(body, limit)
		return false, err
	})
	return raw, err
}

// file returns the path of a file that has digest d, from the cache or from the
// first of urls that has it.
func (f *fetcher) file(ctx context.Context, d digest, urls ...string) (path string, cached bool, err error) {
	path = filepath.Join(f.dir, d.sha256)
	if verify(path, d) == nil {
		return path, true, nil
	}
	var errs []error
	for _, url := range urls {
		err := f.download(ctx, url, path, d)
		if err == nil {
			return path, false, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return "", false, errors.Join(errs...)
}

// download gets url by way of path.part, which it resumes, and renames it when
// the whole is right. Two processes may do so at once: they write the same bytes
// in the same places.
func (f *fetcher) download(ctx context.Context, url, path string, d digest) error {
	part := path + ".part"
	err := f.retry(ctx, url, func(ctx context.Context) (bool, error) { return f.resume(ctx, url, part, d) })
	if errors.Is(err, syscall.ENOSPC) {
		return errors.Join(err, os.Remove(part)) // what there is of it would be in the way of others
	}
	if err != nil {
		return err
	}
	if err := verify(part, d); err != nil {
		os.Remove(part)
		return fmt.Errorf("%s: %w", url, err)
	}
	if err := os.Rename(part, path); err != nil && verify(path, d) != nil {
		return err
	}
	return nil
}

// resume appends to part what is missing and reports whether it is longer than before: a
// server that knows no ranges and always breaks off at one place makes no progress.
func (f *fetcher) resume(ctx context.Context, url, part string, d digest) (progress bool, err error) {
	out, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	at, err := out.Seek(0, io.SeekEnd)
	if err != nil || at == d.size {
		return false, err
	}
	if at > d.size {
		at = 0
	}
	body, from, err := f.request(ctx, url, at)
	if err != nil {
		return false, err
	}
	defer body.Close()
	if err := out.Truncate(from); err != nil {
		return false, err
	}
	n, err := io.Copy(io.NewOffsetWriter(out, from), io.LimitReader(body, d.size-from+1))
	if err == nil && from+n < d.size {
		err = io.ErrUnexpectedEOF
	}
	return from+n > at, err
}

// request asks for url from byte at on and returns the body and where it really
// starts: a server may not know ranges.
func (f *fetcher) request(ctx context.Context, url string, at int64) (io.ReadCloser, int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		cancel(nil)
		return nil, 0, err
	}
	if at > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", at))
	}
	resp, err := f.client.Do(req)
	if err != nil {
		cancel(nil)
		return nil, 0, err
	}
	start := int64(-1)
	switch resp.StatusCode {
	case http.StatusOK:
		start, err = 0, nil
	case http.StatusPartialContent:
		var first int64
		if _, err := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-", &first); err == nil && first == at {
			start = at
		}
	case http.StatusNotFound, http.StatusGone:
		err = fmt.Errorf("%s: %w", url, errNotFound)
	}
	if start < 0 {
		if err == nil {
			err = fmt.Errorf("%s: the mirror answered %s", url, resp.Status)
		}
		resp.Body.Close()
		cancel(nil)
		return nil, 0, err
	}
	return &watchedBody{body: resp.Body, cancel: cancel, got: f.got,
		timer: time.AfterFunc(stallTimeout, func() { cancel(fmt.Errorf("no byte for %s", stallTimeout)) })}, start, nil
}

// retry calls try until it succeeds, the mirror says 404, or nothing came for
// fetchTries times in a row.
func (f *fetcher) retry(ctx context.Context, url string, try func(context.Context) (progress bool, err error)) error {
	wait := f.wait
	for failed := 1; ; failed++ {
		progress, err := try(ctx)
		if err == nil || errors.Is(err, errNotFound) || errors.Is(err, syscall.ENOSPC) {
			return err
		}
		if progress {
			failed, wait = 1, f.wait
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if failed == fetchTries {
			return fmt.Errorf("%s: %w (%d tries)", url, err, failed)
		}
		select {
		case <-time.After(wait):
			wait *= 2
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// A watchedBody cancels its request when no byte comes for stallTimeout.
type watchedBody struct {
	body   io.ReadCloser
	timer  *time.Timer
	cancel context.CancelCauseFunc
	got    func(int64)
}

func (w *watchedBody) Read(p []byte) (int, error) {
	n, err := w.body.Read(p)
	w.timer.Reset(stallTimeout)
	if n > 0 && w.got != nil {
		w.got(int64(n))
	}
	return n, err
}

func (w *watchedBody) Close() error {
	w.timer.Stop()
	w.cancel(nil)
	return w.body.Close()
}

// verify checks that the file at path has digest d.
func verify(path string, d digest) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || info.Size() != d.size {
		return fmt.Errorf("wrong size, not %d bytes", d.size)
	}
	h := sha256.New()
	if _, err := io.Copy(h, in); err != nil {
		return err
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != d.sha256 {
		return fmt.Errorf("sha256 is %s, not %s", sum, d.sha256)
	}
	return nil
}
