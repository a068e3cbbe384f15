package cnb

import (
	"flag"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"cupola/cmd/lifecycle/vcap"
	"cupola/runtime/contract"
)

// staging is one run of the builder.
type staging struct {
	flags
	*store
	env      environ // of buildpacks
	target   target
	platform string // directory
	out      io.Writer
}

// flags are the builder's command line. Their defaults are cnbapplifecycle's.
type flags struct {
	workspace, layers, cache string
	droplet, result          string
	newCache                 string
	sources                  []string // directories of what was brought for each buildpack
	passEnv                  []string
	autoDetect               bool
}

func parseFlags(args []string) (f flags, err error) {
	set := flag.NewFlagSet(contract.CommandCNBBuilder, flag.ContinueOnError)
	set.StringVar(&f.workspace, "workspace-dir", contract.CNBWorkspace, "the app's directory")
	set.StringVar(&f.layers, "layers", contract.CNBLayers, "directory of the buildpacks' layers")
	set.StringVar(&f.cache, "cache-dir", contract.StagingOldCache, "directory with the cache of the last staging")
	set.StringVar(&f.newCache, "cache-output", contract.StagingNewCache, "file to write the cache to")
	set.StringVar(&f.droplet, "droplet", contract.StagingDroplet, "file to write the droplet to")
	set.StringVar(&f.result, "result", contract.StagingResult, "file to write the result to")
	set.BoolVar(&f.autoDetect, "auto-detect", false, "try each buildpack alone, in order")
	set.Func("buildpack", "directory of a buildpack, or of a package and =ID@VERSION; repeatable", func(s string) error {
		f.sources = append(f.sources, s)
		return nil
	})
	set.Func("pass-env-var", "environment variable that buildpacks see; repeatable", func(s string) error {
		f.passEnv = append(f.passEnv, s)
		return nil
	})
	if err := set.Parse(args); err != nil {
		return f, err
	}
	if len(f.sources) == 0 {
		return f, fmt.Errorf("missing flag: -buildpack")
	}
	return f, nil
}

// Main stages as args, without the program's name, say. It returns the exit code, one of
// cnbapplifecycle's.
func Main(args []string) int {
	f, err := parseFlags(args)
	if err == nil {
		s := &staging{flags: f, target: thisTarget(), out: os.Stdout}
		err = s.stage()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ERROR: "+err.Error())
		return exitCode(err)
	}
	return 0
}

func (s *staging) stage() error {
	if err := phaseGeneric.in(s.prepare()); err != nil {
		return err
	}
	defer os.RemoveAll(s.platform)
	var err error
	if s.store, err = openStore(s.sources); err != nil {
		return phaseDownload.in(err)
	}
	s.begin("DETECTING")
	found, err := s.detect()
	if err != nil {
		return phaseDetect.in(err)
	}
	s.begin("RESTORING")
	if err := s.restore(found.buildpacks); err != nil {
		return phaseRestore.in(err)
	}
	s.begin("BUILDING")
	built, err := s.build(found)
	if err != nil {
		return phaseBuild.in(err)
	}
	s.begin("EXPORTING")
	return phaseExport.in(s.export(found.buildpacks, built))
}

// prepare makes the directories and the environment of buildpacks.
func (s *staging) prepare() (err error) {
	if url := vcap.DatabaseURL(os.Getenv(contract.EnvServices)); url != "" {
		if err := os.Setenv(contract.EnvDatabaseURL, url); err != nil {
			return err
		}
	}
	for _, p := range []*string{&s.workspace, &s.layers, &s.cache} {
		if *p, err = filepath.Abs(*p); err != nil {
			return err
		}
		if err := os.MkdirAll(*p, 0o755); err != nil {
			return err
		}
	}
	if s.platform, err = os.MkdirTemp("", "platform"); err != nil {
		return err
	}
	s.env = buildEnviron(os.Environ())
	return writePlatform(s.platform, s.passEnv)
}

// begin says which phase begins, as lifecycle does.
func (s *staging) begin(phase string) { s.say("===> %s", phase) }

func (s *staging) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// sorted iterates over a map in the order of its keys.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if !yield(name, m[name]) {
				return
			}
		}
	}
}
