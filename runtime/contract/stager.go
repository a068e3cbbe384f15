package contract

import "time"

// CommandStage is the command of Fetch that stages an app in a pod: it does what a StagingPlan says. On this machine
// the daemon does that itself, step by step.
const CommandStage = "stage"

// Commands of Fetch in the pod of an agent: it waits for its end, and serves the daemon's tunnel on its standard streams.
const (
	CommandAgent  = "agent"
	CommandTunnel = "tunnel"
)

// How the stager finds the daemon. It takes these out of the environment: what it starts does not see them.
const (
	EnvStagerURL   = "CUPOLA_STAGER_URL"   // below it are the plan, inputs and outputs of this one staging
	EnvStagerToken = "CUPOLA_STAGER_TOKEN" // a bearer token that is good for them alone
	EnvStagerCA    = "CUPOLA_STAGER_CA"    // PEM of whom the daemon's certificate is signed by
)

// What is below EnvStagerURL.
const (
	StagerPlan    = "plan"    // GET: a StagingPlan
	StagerInputs  = "inputs"  // GET inputs/SOURCE: an archive
	StagerOutputs = "outputs" // PUT outputs/NAME: a file, once
)

// OutputResult is the output that StagingResult is.
const OutputResult = "result"

// StagerReport is the file in which the stager says why it failed: the termination message of its container.
const StagerReport = "/dev/termination-log"

// MaxStagerReport is how long Kubernetes lets that be. Bytes.
const MaxStagerReport = 4096

// StagerExit is the exit code of a stager that failed by itself. What a process of the plan exits with, the stager does, too.
const StagerExit = 1

// StagingReport is the content of StagerReport.
type StagingReport struct {
	Reasons []string `json:"reasons,omitempty"` // in Diego's words; none for a good end
	Lost    bool     `json:"lost,omitempty"`    // it did not begin: the daemon that had the plan is gone
}

// StagingPlan is what the stager does.
type StagingPlan struct {
	Env    []Variable  `json:"env"`    // of all processes, over what the container has
	Source string      `json:"source"` // of the log: "STG"
	Steps  StagingStep `json:"steps"`
	Result string      `json:"result"` // the file that becomes OutputResult, after all steps
}

// Variable is an environment variable.
type Variable struct{ Name, Value string }

// StagingStep is one of Diego's actions; exactly one field is set.
type StagingStep struct {
	Run      *StagingRun      `json:"run,omitempty"`
	Download *StagingDownload `json:"download,omitempty"`
	Upload   *StagingUpload   `json:"upload,omitempty"`
	Timeout  *StagingTimeout  `json:"timeout,omitempty"`
	Progress *StagingProgress `json:"progress,omitempty"`
	Try      *StagingStep     `json:"try,omitempty"`      // never fails
	Parallel []StagingStep    `json:"parallel,omitempty"` // all at once, to their ends
	Serial   []StagingStep    `json:"serial,omitempty"`   // until one fails
}

// StagingRun is a process.
type StagingRun struct {
	Path string     `json:"path"`
	Args []string   `json:"args"`
	Dir  string     `json:"dir,omitempty"`
	Env  []Variable `json:"env,omitempty"`
}

// StagingDownload unpacks an input into a directory.
type StagingDownload struct {
	Input    string `json:"input"`              // a SOURCE below StagerInputs
	Image    bool   `json:"image,omitempty"`    // it is a layer of an image
	Artifact string `json:"artifact,omitempty"` // what it is called in the log; "" for not a word
	To       string `json:"to"`
}

// StagingUpload sends a file.
type StagingUpload struct {
	Artifact string `json:"artifact,omitempty"`
	From     string `json:"from"`
	Output   string `json:"output"` // a NAME below StagerOutputs
}

// StagingTimeout is a step that fails if it takes longer.
type StagingTimeout struct {
	Step  StagingStep   `json:"step"`
	After time.Duration `json:"after"`
}

// StagingProgress is a step around which lines are logged.
type StagingProgress struct {
	Step          StagingStep `json:"step"`
	Start         string      `json:"start,omitempty"`
	Success       string      `json:"success,omitempty"`
	FailurePrefix string      `json:"failure_prefix,omitempty"`
}
