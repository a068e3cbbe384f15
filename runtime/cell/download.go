package cell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"cupola/rootfs/tree"
	"cupola/runtime/contract"
	"cupola/runtime/durable"
	"cupola/runtime/lrp"
)

// download unpacks an archive into the container.
func (p *performer) download(ctx context.Context, at string, d *lrp.Download, source string) error {
	source = cmp.Or(d.LogSource, source)
	if s := p.step(at); s.Done {
		return s.err()
	}
	began := p.began(at)
	err := p.fetchInto(ctx, d, source)
	p.trace.step("download", d.Artifact, began, err != nil)
	if err != nil && ctx.Err() != nil {
		return p.done(at, errCancelled)
	}
	return p.done(at, err)
}

func (p *performer) fetchInto(ctx context.Context, d *lrp.Download, source string) error {
	u, err := p.lookUp(d.User)
	if err != nil {
		return failure{"Copying into the container failed: " + err.Error()}
	}
	archive, err := p.fetch(ctx, d.Source, d.Artifact, source)
	if err != nil {
		return err
	}
	defer archive.Release()
	owner := tree.Owner{UID: u.UID, GID: u.GID}
	extract := p.cell.cfg.RootFS.Extract
	if strings.HasPrefix(d.From, lrp.LayerScheme) {
		extract = p.cell.cfg.RootFS.ExtractLayer
	}
	err = extract(ctx, p.guid(), archive.Path, u.path(d.To), owner)
	if errors.Is(err, durable.ErrDamaged) {
		return p.notFetched(ctx, d.Artifact, source, err)
	}
	if err != nil {
		text := strings.Join(strings.Fields("Copying "+d.Artifact+" into the container failed:"), " ") + " " + err.Error()
		p.moan(ctx, d.Artifact, source, text)
		return failure{text}
	}
	p.downloaded(d.Artifact, source, archive)
	return nil
}

// upload takes a file out of the container.
func (p *performer) upload(ctx context.Context, at string, u *lrp.Upload, source string) error {
	source = cmp.Or(u.LogSource, source)
	if s := p.step(at); s.Done {
		return s.err()
	}
	began := p.began(at)
	size, err := p.send(ctx, u, source)
	p.trace.step("upload", u.Artifact, began, err != nil)
	switch {
	case err != nil && ctx.Err() != nil:
		err = errCancelled
	case err != nil:
		p.cell.cfg.Log.InfoContext(ctx, "file was not uploaded", "instance_guid", p.guid(), "err", err)
		text := "Failed to upload payload"
		if errors.Is(err, errNotInContainer) {
			text = errNotInContainer.Error()
		}
		if u.Artifact != "" {
			text += " for " + u.Artifact
		}
		said := text
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			said += ": the cell's disk is full"
		}
		p.moan(ctx, u.Artifact, source, said)
		err = failure{text}
	case u.Artifact != "":
		p.line(source, false, fmt.Sprintf("Uploaded %s (%s)", u.Artifact, contract.ByteSize(size)))
	}
	return p.done(at, err)
}

func (p *performer) send(ctx context.Context, u *lrp.Upload, source string) (int64, error) {
	if u.Artifact != "" {
		p.line(source, false, "Uploading "+u.Artifact+"...")
	}
	as, err := p.lookUp(u.User)
	if err != nil {
		return 0, err
	}
	f, err := p.cell.cfg.RootFS.Open(p.guid(), as.path(u.From))
	if err != nil {
		return 0, fmt.Errorf("%w: %v", errNotInContainer, err)
	}
	defer f.Close()
	if name, ok := blobName(u.To); ok {
		return p.keepBlob(ctx, name, f, u.Like)
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if p.cell.cfg.Artifacts == nil {
		return 0, errNoArtifacts
	}
	return info.Size(), p.cell.cfg.Artifacts.Upload(ctx, u.To, f, info.Size())
}

// errNotInContainer says that there is no such file.
var errNotInContainer = errors.New("Failed to establish stream from container")

// keepBlob stores a file in the blob store, and records it for the event that
// reports the end.
func (p *performer) keepBlob(ctx context.Context, name string, f *os.File, like string) (int64, error) {
	if p.cell.cfg.Keep == nil {
		return 0, errors.New("cell keeps no files")
	}
	blob, err := p.cell.cfg.Keep(ctx, name, f, like)
	if err != nil {
		return 0, err
	}
	p.update(func(r *record) { r.Outputs = append(r.Outputs, blob) })
	return blob.Size, nil
}
