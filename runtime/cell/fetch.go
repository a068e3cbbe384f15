package cell

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cupola/rootfs/tree"
	"cupola/runtime/artifact"
	"cupola/runtime/contract"
	"cupola/runtime/lrp"
)

// blobName is the name of what the cell itself keeps.
func blobName(url string) (string, bool) { return strings.CutPrefix(url, lrp.BlobScheme) }

// fetch brings an archive onto the machine. The caller releases it.
func (b *build) fetch(ctx context.Context, from lrp.Source, what, source string) (artifact.File, error) {
	if what != "" {
		b.line(source, false, "Downloading "+what+"...")
	}
	file, err := b.open(ctx, from)
	if err != nil {
		return file, b.notFetched(ctx, what, source, err)
	}
	return file, nil
}

// notFetched logs that an archive is not there, and returns the error of that.
func (b *build) notFetched(ctx context.Context, what, source string, err error) error {
	b.cell.cfg.Log.InfoContext(ctx, "archive was not fetched", "instance_guid", b.guid(), "err", err)
	text := "Downloading failed"
	if what != "" {
		text = "Downloading " + what + " failed"
	}
	b.moan(ctx, what, source, text)
	return &blame{text, err}
}

// downloaded says that an archive is where it should be.
func (b *build) downloaded(what, source string, file artifact.File) {
	switch {
	case what == "":
	case file.Cached:
		b.line(source, false, "Downloaded "+what)
	default:
		b.line(source, false, fmt.Sprintf("Downloaded %s (%s)", what, contract.ByteSize(file.Size)))
	}
}

// moan logs an error of a named file.
func (b *build) moan(ctx context.Context, what, source, text string) {
	if what != "" && ctx.Err() == nil {
		b.line(source, true, text)
	}
}

// errNoArtifacts says that the cell cannot transfer files by HTTP.
var errNoArtifacts = errors.New("cell fetches nothing by URL")

func (b *build) open(ctx context.Context, from lrp.Source) (artifact.File, error) {
	if digest, ok := strings.CutPrefix(from.From, lrp.LayerScheme); ok {
		return b.openLayer(digest)
	}
	digest, own := blobName(from.From)
	if !own && b.cell.cfg.Artifacts == nil {
		return artifact.File{}, errNoArtifacts
	}
	if !own {
		return b.cell.cfg.Artifacts.Fetch(ctx, artifact.Source{URL: from.From, Algorithm: from.Checksum.Algorithm, Value: from.Checksum.Value, CacheKey: from.CacheKey})
	}
	path, err := b.cell.cfg.Blob(digest)
	if err != nil {
		return artifact.File{}, err
	}
	file, err := artifact.Local(path, digest)
	if m, merr := tree.ReadMark(path); merr == nil {
		file.Size = m.Size // of the archive, which is kept unpacked
	}
	return file, err
}

// openLayer opens a layer of an image in the cache.
func (b *build) openLayer(digest string) (artifact.File, error) {
	if b.cell.cfg.Layer == nil {
		return artifact.File{}, errors.New("cell has no images")
	}
	path, err := b.cell.cfg.Layer(digest)
	if err != nil {
		return artifact.File{}, err
	}
	return artifact.Local(path, digest)
}
