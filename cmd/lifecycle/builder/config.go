package builder

import (
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"cupola/runtime/contract"
)

// config is the builder's command line; the flags, their defaults and the
// layout of the directories are Cloud Foundry's.
type config struct {
	buildDir       string
	outputDroplet  string
	outputMetadata string
	outputCache    string
	buildpacksDir  string
	downloadDir    string
	cacheDir       string
	order          []string
	skipDetect     bool
}

func parseFlags(args []string, usage io.Writer) (config, error) {
	var c config
	var order string
	var ignored struct {
		skipCertVerify  bool
		connectAttempts int
		retryDelay      string
	}
	flags := flag.NewFlagSet("builder", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&c.buildDir, "buildDir", contract.StagingApp, "directory containing raw app bits")
	flags.StringVar(&c.outputDroplet, "outputDroplet", contract.StagingDroplet, "file where compressed droplet should be written")
	flags.StringVar(&c.outputMetadata, "outputMetadata", contract.StagingResult, "file in which to write the app metadata")
	flags.StringVar(&c.outputCache, "outputBuildArtifactsCache", contract.StagingNewCache, "file where compressed contents of new cached build artifacts should be written")
	flags.StringVar(&c.buildpacksDir, "buildpacksDir", contract.StagingBuildpacks, "directory containing the buildpacks to try")
	flags.StringVar(&c.downloadDir, "buildpacksDownloadDir", contract.StagingDownloads, "second directory containing buildpacks")
	flags.StringVar(&c.cacheDir, "buildArtifactsCacheDir", contract.StagingOldCache, "directory where previous cached build artifacts should be extracted")
	flags.StringVar(&order, "buildpackOrder", "", "comma-separated list of buildpacks, to be tried in order")
	flags.BoolVar(&c.skipDetect, "skipDetect", false, "skip buildpack detect")
	flags.BoolVar(&ignored.skipCertVerify, "skipCertVerify", false, "accepted and not used: buildpacks are there when it starts")
	flags.IntVar(&ignored.connectAttempts, "credhubConnectAttempts", 0, "accepted and not used")
	flags.StringVar(&ignored.retryDelay, "credhubRetryDelay", "", "accepted and not used")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if order == "" {
		return c, fmt.Errorf("missing flag: -buildpackOrder")
	}
	c.order = strings.Split(order, ",")
	return c, c.absolute()
}

// absolute makes the paths independent of the working directory, since the
// buildpacks' scripts are given them.
func (c *config) absolute() error {
	for _, p := range []*string{&c.buildDir, &c.outputDroplet, &c.outputMetadata, &c.outputCache, &c.buildpacksDir, &c.downloadDir, &c.cacheDir} {
		if *p == "" {
			return fmt.Errorf("a path is empty")
		}
		abs, err := filepath.Abs(*p)
		if err != nil {
			return err
		}
		*p = abs
	}
	return nil
}

// suppliers are the buildpacks before the last, which only supply.
func (c config) suppliers() []string {
	if !c.skipDetect {
		return nil
	}
	return c.order[:len(c.order)-1]
}

// depsIndex is the name of the i-th buildpack's directory in deps/, padded
// to the digits of the count.
func (c config) depsIndex(i int) string {
	digits := len(fmt.Sprint(len(c.suppliers()) + 1))
	return fmt.Sprintf("%0*d", digits, i)
}
