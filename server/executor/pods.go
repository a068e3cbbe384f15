package executor

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cupola/runtime/lrp"
	"cupola/server/cells"
	"cupola/server/kube/podcell"
	"cupola/server/loggregator"
)

// openPods opens the cells that are clusters.
func (e *Executor) openPods(ctx context.Context) error {
	dir := e.Dir.Path("kubernetes")
	left, err := podcell.Left(dir, e.Clusters, e.Log)
	if err != nil {
		e.Log.Warn("clusters of an earlier start are not known", "err", err)
	}
	clusters := slices.Concat(e.Clusters, left)
	if len(clusters) == 0 {
		return nil
	}
	owner, err := podcell.OwnerIn(dir)
	if err != nil {
		return err
	}
	if err := e.openPulls(ctx, dir); err != nil {
		return err
	}
	for _, of := range clusters {
		c, err := podcell.Open(of, podcell.Config{Owner: owner, Dir: filepath.Join(dir, of.Name), Pulls: e.Pulls, Logs: e.Logs.Line, LogTags: loggregator.CellTags(), Events: e.Events, Freed: e.Freed, Log: e.Log})
		if err != nil {
			return fmt.Errorf("--kubernetes %s: %w", of.Name, err)
		}
		e.Pods = append(e.Pods, c)
	}
	return nil
}

// openPulls listens for the nodes of clusters.
func (e *Executor) openPulls(ctx context.Context, dir string) error {
	if e.KubernetesRegistry == "" {
		return nil
	}
	pulls := &podcell.Pulls{Stacks: e.machine.RootFSes, Source: e.Roots.Packed, Pack: func(ctx context.Context, of lrp.RunInfo, tell func(string)) (string, error) {
		of.RootFS = e.machine.RootFS(of.RootFS)
		image, err := e.Images.PackRoot(ctx, of, tell)
		return image.Digest, err
	}, Open: e.openInput, Keep: func(ctx context.Context, r io.Reader) (lrp.Blob, error) {
		b, err := e.Blobs.Put(ctx, r)
		return lrp.Blob{Digest: b.Digest, Size: b.Size}, err
	}, Has: e.Blobs.Has, CA: func() ([]byte, error) {
		ca, err := e.Dir.Authority()
		if err != nil {
			return nil, err
		}
		return ca.Trust(), nil
	}}
	if err := pulls.Advertise(ctx, e.KubernetesRegistry, dir); err != nil {
		return fmt.Errorf("%w: give another address with --kubernetes-registry", err)
	}
	if err := pulls.Listen(ctx, cmp.Or(e.RegistryListen, e.KubernetesRegistry)); err != nil {
		return fmt.Errorf("%w: give an address of this machine with --kubernetes-registry-listen", err)
	}
	e.Pulls = pulls
	return nil
}

// openInput opens an archive for a staging in a pod.
func (e *Executor) openInput(source string) (*os.File, error) {
	if digest, ok := strings.CutPrefix(source, lrp.LayerScheme); ok {
		path, err := e.Roots.Images.BlobPath(digest)
		if err != nil {
			return nil, err
		}
		return os.Open(path)
	}
	return e.Blobs.Open(strings.TrimPrefix(source, lrp.BlobScheme))
}

// Cells are all cells: the parts of this machine, and clusters.
func (e *Executor) Cells() (all []cells.Placed) {
	for _, p := range e.Cell.Parts() {
		all = append(all, p)
	}
	for _, p := range e.Pods {
		all = append(all, p)
	}
	return all
}

// AllContainers are those of all cells.
func (e *Executor) AllContainers() []lrp.ContainerStatus {
	all := e.Cell.Containers()
	for _, p := range e.Pods {
		all = append(all, p.Containers()...)
	}
	return all
}

// Adopted is closed once the cell of this machine knows the containers that survived.
func (e *Executor) Adopted() <-chan struct{} { return e.Cell.Adopted() }

// SetReach sets what the containers of all cells may connect to.
func (e *Executor) SetReach(ctx context.Context, r lrp.Reach) error {
	for _, p := range e.Pods {
		p.SetReach(r)
	}
	return e.Cell.SetReach(ctx, r)
}

// Stats is what a container uses, on whichever cell it is.
func (e *Executor) Stats(guid string) (lrp.Stats, bool) {
	if p := e.podsWith(guid); p != nil {
		return p.Stats(guid)
	}
	return e.Cell.Stats(guid)
}

// Attach runs a further process in a container, on whichever cell it is.
func (e *Executor) Attach(ctx context.Context, guid string, args ...string) (io.ReadWriteCloser, error) {
	if p := e.podsWith(guid); p != nil {
		return p.Attach(ctx, guid, args...)
	}
	return e.Cell.Attach(ctx, guid, args...)
}

// logTags are the tags of a container's measurements, on whichever cell it is.
func (e *Executor) logTags(guid string) map[string]string {
	if p := e.podsWith(guid); p != nil {
		return p.LogTags(guid)
	}
	return e.Cell.LogTags(guid)
}

// podsWith is the cluster that has a container; nil of none.
func (e *Executor) podsWith(guid string) *podcell.Cell {
	for _, p := range e.Pods {
		if p.Has(guid) {
			return p
		}
	}
	return nil
}
