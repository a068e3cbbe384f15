package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"cupola/rootfs/oci"
	"cupola/rootfs/reference"
)

// Place is a reference of an image, and how to read it there.
type Place struct {
	Ref     reference.Reference
	Auth    Auth
	Trusted bool // an operator named it
}

// Source is one registry that an image may come from, for reading one repository.
type Source struct {
	repo   name.Repository
	client *http.Client // holds the credentials
}

// Sources connect to where an image may be, in order: the mirrors, then the registry itself.
func (c *Client) Sources(at Place) []func(context.Context) (Source, error) {
	r := at.Ref
	var all []func(context.Context) (Source, error)
	for _, host := range c.cfg.Mirrors[r.Host] {
		m := r
		m.Host = strings.ToLower(host)
		all = append(all, func(ctx context.Context) (Source, error) { return c.connect(ctx, m, Auth{}, c.trusted) })
	}
	by := c.users
	if at.Trusted || c.named(r.Host) {
		by = c.trusted
	}
	return append(all, func(ctx context.Context) (Source, error) { return c.connect(ctx, r, at.Auth, by) })
}

// connect logs in to a registry, for reading one repository.
func (c *Client) connect(ctx context.Context, r reference.Reference, auth Auth, by http.RoundTripper) (Source, error) {
	repo, err := c.repository(r.Host + "/" + r.Repository)
	if err != nil {
		return Source{}, err
	}
	rt, err := transport.NewWithContext(ctx, repo.Registry, auth.authenticator(), by, []string{repo.Scope(transport.PullScope)})
	if err != nil {
		return Source{}, registryError(err)
	}
	return Source{repo, &http.Client{Transport: rt}}, nil
}

// Resolve asks the registry, or its mirrors, for the digest that an image has now; it moves no layer. For a reference with a
// digest it asks whether that image is there and the credentials may have it. An error may be ErrDenied or ErrMissing.
func (c *Client) Resolve(ctx context.Context, at Place) (digest string, err error) {
	r := at.Ref
	if r.Scheme != reference.SchemeDocker {
		return "", errors.New("it is in no registry")
	}
	err = c.firstSource(ctx, at, func(from Source) error {
		digest, err = from.digest(ctx, r.TagOrDigest())
		if err == nil && r.Digest != "" && digest != r.Digest {
			err = fmt.Errorf("the registry has %s instead", digest)
		}
		return err
	})
	return digest, err
}

// firstSource calls do with one source after the other until one succeeds. Otherwise the error is that of the last one, the
// registry itself.
func (c *Client) firstSource(ctx context.Context, at Place, do func(Source) error) (err error) {
	for _, connect := range c.Sources(at) {
		var from Source
		if from, err = connect(ctx); err == nil {
			err = do(from)
		}
		if err == nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
	}
	return err
}

// do sends a request for something in the repository. The caller closes the body of an answer with one of the codes.
func (s Source) do(ctx context.Context, method, what string, header http.Header, codes ...int) (*http.Response, error) {
	u := url.URL{Scheme: s.repo.Scheme(), Host: s.repo.RegistryStr(), Path: "/v2/" + s.repo.RepositoryStr() + "/" + what}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	res, err := s.client.Do(req)
	if err != nil {
		return nil, registryError(err)
	}
	if err := transport.CheckError(res, codes...); err != nil {
		return nil, errors.Join(registryError(err), res.Body.Close())
	}
	return res, nil
}

// Manifest fetches the document of a tag or digest.
func (s Source) Manifest(ctx context.Context, tagOrDigest string) ([]byte, error) {
	res, err := s.do(ctx, http.MethodGet, "manifests/"+tagOrDigest, http.Header{"Accept": oci.DocumentTypes}, http.StatusOK)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, oci.MaxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	if len(text) > oci.MaxDocument {
		return nil, fmt.Errorf("the manifest is larger than %d bytes", oci.MaxDocument)
	}
	return text, nil
}

// digest asks for the digest of a tag or digest. It fetches nothing where the registry can tell without.
func (s Source) digest(ctx context.Context, tagOrDigest string) (string, error) {
	res, err := s.do(ctx, http.MethodHead, "manifests/"+tagOrDigest, http.Header{"Accept": oci.DocumentTypes}, http.StatusOK)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if d := res.Header.Get("Docker-Content-Digest"); reference.IsDigest(d) {
		return d, nil
	}
	text, err := s.Manifest(ctx, tagOrDigest)
	return oci.Digest(text), err
}

// Blob asks a registry for the rest of a blob. It returns the byte that the answer begins at: a registry that
// knows no ranges sends all of it.
func (s Source) Blob(ctx context.Context, digest string, from int64) (io.ReadCloser, int64, error) {
	header := http.Header{}
	if from > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	res, err := s.do(ctx, http.MethodGet, "blobs/"+digest, header, http.StatusOK, http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable)
	if err != nil {
		return nil, 0, err
	}
	switch {
	case res.StatusCode == http.StatusOK:
		return res.Body, 0, nil
	case from > 0 && res.StatusCode == http.StatusPartialContent && strings.HasPrefix(res.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", from)):
		return res.Body, from, nil
	}
	res.Body.Close()
	if from == 0 {
		return nil, 0, fmt.Errorf("the registry answers %s", res.Status)
	}
	return s.Blob(ctx, digest, 0)
}
