// Command images measures how long an image takes from a registry into files:
// `cupola stack pull` beside `skopeo copy` with `umoci unpack`, and beside
// `podman pull`, taking turns. The image has 300 MB in five layers; a second one
// shares four of them. It needs root, skopeo, umoci and podman; the registry is
// its own, on the loopback.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"cupola/bench/report"
)

func main() {
	rounds := flag.Int("rounds", 5, "how often each pulls")
	megabytes := flag.Int("mb", 300, "the size of the image, unpacked")
	binary := flag.String("cupola", "bin/cupola", "the built cupola")
	flag.Parse()
	report.Main(10*time.Minute, func(ctx context.Context) error {
		if os.Getenv(inOwnMounts) != "" {
			return measure(ctx, *rounds, *megabytes, *binary)
		}
		if ownMounts(ctx) != nil {
			os.Exit(1) // it has said why
		}
		return nil
	})
}

// diskBytes is room for two images in the form of each.
const diskBytes = 6 << 30

func measure(ctx context.Context, rounds, megabytes int, binary string) (err error) {
	r := newRegistry()
	defer r.close()
	first, second, err := r.fill(int64(megabytes) * 1e6)
	if err != nil {
		return err
	}
	defer cleanMachine()()
	pullers := []*puller{
		{name: "cupola stack pull", pull: cupolaPull(binary)},
		{name: "podman pull", pull: podmanPull},
		{name: "skopeo copy + umoci unpack", pull: skopeoPull},
	}
	for range rounds {
		for _, p := range pullers {
			if err := p.round(ctx, r, first, second); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	fmt.Printf("An image of %d MB in %d files and 5 layers, %.0f MB to move, from a registry on the loopback; median of %d by turns:\n\n",
		megabytes, first.files, float64(first.bytes())/1e6, rounds)
	printPullers(pullers)
	return checkShared(pullers[0], second)
}

func printPullers(all []*puller) {
	table := report.NewTable("pull", "s", "min", "× cupola", "CPU, s", "× cupola", "on disk after, s", "4 of 5 layers here, s", "MB moved")
	seconds := func(d time.Duration) string { return report.Figure(d.Seconds(), 2) }
	ours := all[0].medians()
	for _, p := range all {
		m := p.medians()
		table.Add(p.name, seconds(m.took), seconds(slices.Min(p.each(func(s sample) time.Duration { return s.took }))),
			ratio(m.took, ours.took), seconds(m.cpu), ratio(m.cpu, ours.cpu), seconds(m.synced), seconds(m.shared), report.Figure(float64(m.moved)/1e6, 1))
	}
	table.Print(os.Stdout)
}

func ratio(d, base time.Duration) string { return report.Figure(float64(d)/float64(base), 2) }

// checkShared holds that a layer that is here is not moved again.
func checkShared(p *puller, second image) error {
	want := second.layers[len(second.layers)-1].size + second.config
	for _, s := range p.samples {
		if s.moved != want {
			return fmt.Errorf("%s moved %d bytes of an image that lacks one layer and its configuration, of %d", p.name, s.moved, want)
		}
	}
	return nil
}

// sample is what one pull took.
type sample struct {
	took, cpu time.Duration // until the command has ended
	synced    time.Duration // until all is on disk, from the beginning
	shared    time.Duration // of the second image
	moved     int64         // bytes of blobs of the second image
}

// puller is a way to bring an image into dir, which is empty at first and has the
// first image when the second is pulled.
type puller struct {
	name    string
	pull    func(ctx context.Context, dir string, ref reference) (usage, error)
	samples []sample
}

// round pulls both images onto a new disk.
func (p *puller) round(ctx context.Context, r *registry, first, second image) (err error) {
	d, err := newDisk(ctx, diskBytes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if _, err := p.pull(ctx, d.dir, reference{}); err != nil { // opens its store
		return err
	}
	if err := d.sync(); err != nil { // what was written before is not its matter
		return err
	}
	var s sample
	begin := time.Now()
	used, err := p.pull(ctx, d.dir, r.reference(first))
	if err != nil {
		return err
	}
	s.took, s.cpu = used.wall, used.cpu
	if err := d.sync(); err != nil {
		return err
	}
	s.synced = time.Since(begin)
	r.moved.Store(0)
	if used, err = p.pull(ctx, d.dir, r.reference(second)); err != nil {
		return err
	}
	s.shared, s.moved = used.wall, r.moved.Load()
	p.samples = append(p.samples, s)
	return nil
}

func (p *puller) each(of func(sample) time.Duration) (all []time.Duration) {
	for _, s := range p.samples {
		all = append(all, of(s))
	}
	return all
}

func (p *puller) medians() sample {
	return sample{
		took:   report.Median(p.each(func(s sample) time.Duration { return s.took })),
		cpu:    report.Median(p.each(func(s sample) time.Duration { return s.cpu })),
		synced: report.Median(p.each(func(s sample) time.Duration { return s.synced })),
		shared: report.Median(p.each(func(s sample) time.Duration { return s.shared })),
		moved:  p.samples[0].moved,
	}
}
