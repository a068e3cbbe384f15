package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"cupola/runtime/contract"
)

// StagingInfoFile is in the droplet's root, which is the directory the
// launcher is started in.
const StagingInfoFile = "staging_info.yml"

// stagingInfoLimit is far above what a builder writes.
const stagingInfoLimit = 1 << 20

// StagingInfo is what the builder leaves for the launcher.
type StagingInfo struct {
	DetectedBuildpack string                  `json:"detected_buildpack" yaml:"detected_buildpack"`
	StartCommand      string                  `json:"start_command" yaml:"start_command"`
	Config            contract.LauncherConfig `json:"config,omitzero" yaml:"config"`
}

// readStagingInfo returns the zero value when the droplet has none.
func readStagingInfo(decode func([]byte) (StagingInfo, error)) (StagingInfo, error) {
	f, err := os.Open(StagingInfoFile)
	if errors.Is(err, fs.ErrNotExist) {
		return StagingInfo{}, nil
	}
	if err != nil {
		return StagingInfo{}, fmt.Errorf("invalid staging info: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, stagingInfoLimit))
	if err != nil {
		return StagingInfo{}, fmt.Errorf("invalid staging info: %w", err)
	}
	info, err := decode(text)
	if err != nil {
		return StagingInfo{}, fmt.Errorf("invalid staging info: %w", err)
	}
	return info, nil
}

// decodeJSON reads staging info as JSON, which cupola's builder and Cloud
// Foundry's write although the file's name ends in .yml.
func decodeJSON(text []byte) (StagingInfo, error) {
	var info StagingInfo
	if err := json.Unmarshal(text, &info); err != nil {
		return info, errNeedFull
	}
	return info, nil
}
