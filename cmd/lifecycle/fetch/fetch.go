package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"cupola/rootfs/unpack"
	"cupola/runtime/contract"
)

// timeLimit is how long a download may take: that of Cloud Foundry's builder.
const timeLimit = 10 * time.Minute

// The limits of what a server may send. The largest upstream buildpacks with all
// their dependencies have about 1.5 GB.
const (
	maxBytes   = 2 << 30 // of a zip; of a repository's packs together; of its files
	maxEntries = 300_000 // files and directories of a repository, with those of its submodules
)

// fetcher downloads buildpacks.
type fetcher struct {
	bytes   int64
	entries int
	client  *http.Client
}

func newFetcher() *fetcher {
	return &fetcher{bytes: maxBytes, entries: maxEntries, client: newClient()}
}

// source is where a buildpack is.
type source struct {
	url     string
	archive bool // it is a zip or tar file, whatever its name; else the name says whether it is a zip
}

// fetch unpacks the buildpack that a URL leads to into an empty directory, and
// returns the bytes that were received. Errors are for the person who pushes.
func (f *fetcher) fetch(ctx context.Context, from source, dir string) (int64, error) {
	u, err := url.Parse(from.url)
	if err != nil {
		return 0, errors.New("it is not a valid URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return 0, fmt.Errorf("%s is not supported, only http and https are", u.Scheme)
	}
	if from.archive {
		return f.unpacked(ctx, u, dir, extractAny)
	}
	if strings.HasSuffix(u.Path, ".zip") { // Cloud Foundry's rule
		return f.unpacked(ctx, u, dir, extract)
	}
	return f.git(ctx, u, dir)
}

// unpacked downloads and unpacks an archive.
func (f *fetcher) unpacked(ctx context.Context, u *url.URL, dir string, extract func(context.Context, *os.File, string) error) (int64, error) {
	file, err := os.CreateTemp("", "buildpack-*.zip")
	if err != nil {
		return 0, err
	}
	defer func() { _ = errors.Join(file.Close(), os.Remove(file.Name())) }() // it is only read from here on
	size, err := f.download(ctx, u, file)
	if err != nil {
		return 0, err
	}
	return size, extract(ctx, file, dir)
}

func (f *fetcher) download(ctx context.Context, u *url.URL, to io.Writer) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0, errors.New("it is not a valid URL")
	}
	if err := authorize(req); err != nil {
		return 0, err
	}
	res, err := f.client.Do(req)
	if err != nil {
		return 0, cause(err)
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode != http.StatusOK:
		return 0, statusError(res.StatusCode)
	case res.ContentLength > f.bytes:
		return 0, tooLargeError(f.bytes)
	}
	n, err := io.Copy(to, io.LimitReader(res.Body, f.bytes+1))
	switch {
	case err != nil:
		return n, fmt.Errorf("the download broke off after %d bytes: %w", n, cause(err))
	case n > f.bytes:
		return n, tooLargeError(f.bytes)
	}
	return n, nil
}

// extract unpacks a zip into a directory, and nothing outside of it.
func extract(ctx context.Context, file *os.File, dir string) error {
	archive, err := unpack.Section(file)
	if err != nil {
		return err
	}
	var magic [2]byte
	if _, err := archive.ReadAt(magic[:], 0); err != nil || string(magic[:]) != "PK" {
		return errors.New("it is not a valid zip file")
	}
	return extractAny(ctx, file, dir)
}

// extractAny is extract for a zip or a tar file.
func extractAny(ctx context.Context, file *os.File, dir string) error {
	archive, err := unpack.Section(file)
	if err != nil {
		return err
	}
	root, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	_, err = unpack.Into(ctx, root, archive, unpack.Options{})
	return err
}

// cause is an error of the client without the URL, which may hold a password.
func cause(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// statusError is an answer's status. Only its number is the server's: nothing
// that it says is quoted.
type statusError int

func (s statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", int(s), http.StatusText(int(s))))
}

// tooLargeError is the limit of bytes that was exceeded.
type tooLargeError int64

func (e tooLargeError) Error() string { return fmt.Sprintf("it has more than %d bytes", int64(e)) }

// authorize adds what the environment has for the server, if it has anything: a user with
// a password, or a token (cnbapplifecycle: pkg/keychain). Its name may have the port.
func authorize(req *http.Request) error {
	text := os.Getenv(contract.EnvCNBCredentials)
	if text == "" {
		return nil
	}
	var all map[string]struct{ Username, Password, Token string }
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return fmt.Errorf("invalid %s: it is not an object of objects", contract.EnvCNBCredentials)
	}
	have, ok := all[req.URL.Host]
	if !ok {
		have = all[req.URL.Hostname()]
	}
	switch {
	case have.Username != "":
		req.SetBasicAuth(have.Username, have.Password)
	case have.Token != "":
		req.Header.Set("Authorization", "Bearer "+have.Token)
	}
	return nil
}
