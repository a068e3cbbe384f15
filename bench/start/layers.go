package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"cupola/bench/report"
	"cupola/rootfs/image"
	"cupola/rootfs/reference"
)

// layered is an image of so many layers. All have the same files, in the same
// directories, spread over them.
type layered struct {
	layers int
	rootFS string
	took   []time.Duration
}

const (
	filesOfImages = 900
	dirsOfImages  = 30
)

// byLayers measures the start of instances on images of more and more layers, by
// turns, and one round more than it counts.
func byLayers(ctx context.Context, w *world, rounds int) error {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	images := []*layered{{layers: 1}, {layers: 5}, {layers: 30}}
	if err := pullLayered(ctx, w, images); err != nil {
		return err
	}
	for round := range rounds + 1 {
		for _, i := range images {
			took, err := w.firstByteOn(ctx, fmt.Sprintf("layers-%d-%d", i.layers, round), i.rootFS)
			if err != nil {
				return fmt.Errorf("%d layers: %w", i.layers, err)
			}
			if round > 0 {
				i.took = append(i.took, took)
			}
		}
	}
	fmt.Printf("The cell's start to the first byte of output on images, median of %d by turns:\n\n", rounds)
	base := report.Median(images[0].took)
	table := report.NewTable("layers", "ms", "min", "p90", "× 1 layer")
	for _, i := range images {
		m := report.Median(i.took)
		table.Add(strconv.Itoa(i.layers), ms(m), ms(slices.Min(i.took)), ms(report.Quantile(i.took, 0.9)), ratio(m, base))
	}
	table.Print(os.Stdout)
	return nil
}

// pullLayered makes the images, and pulls each from a registry.
func pullLayered(ctx context.Context, w *world, images []*layered) error {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	for _, i := range images {
		tagged := fmt.Sprintf("%s/bench/layers:%d", strings.TrimPrefix(server.URL, "http://"), i.layers)
		if err := pushLayered(tagged, i.layers); err != nil {
			return err
		}
		ref, err := reference.Parse("docker://" + tagged)
		if err != nil {
			return err
		}
		img, err := w.roots.Images.Pull(ctx, ref, image.PullOptions{})
		if err != nil {
			return err
		}
		i.rootFS = ref.WithDigest(img.Digest).String()
	}
	return nil
}

func pushLayered(tagged string, layers int) error {
	ref, err := name.ParseReference(tagged)
	if err != nil {
		return err
	}
	img := empty.Image
	for n := range layers {
		text, err := share(n, layers)
		if err != nil {
			return err
		}
		if img, err = mutate.AppendLayers(img, static.NewLayer(text, types.DockerUncompressedLayer)); err != nil {
			return err
		}
	}
	return remote.Write(ref, img)
}

// share is the n-th of so many layers.
func share(n, layers int) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	var errs []error
	for file := n; file < filesOfImages; file += layers {
		name := fmt.Sprintf("usr/lib/dir%d/file%d", file/dirsOfImages, file)
		content := strings.Repeat(name+"\n", 100)
		errs = append(errs, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}))
		_, err := io.WriteString(w, content)
		errs = append(errs, err)
	}
	return b.Bytes(), errors.Join(append(errs, w.Close())...)
}
