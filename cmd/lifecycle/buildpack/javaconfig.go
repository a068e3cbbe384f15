package buildpack

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/cmd/lifecycle/jvm"
)

// javaConfig is what the variables JBP_CONFIG_* say (java-buildpack: docs).
type javaConfig struct {
	jre     jreConfig
	options optionsConfig
	main    mainConfig
	tomcat  tomcatConfig
	// versionFrom names the variable of the JVM's version.
	versionFrom string
}

type jreConfig struct {
	JRE struct {
		Version string `yaml:"version"`
	} `yaml:"jre"`
	MemoryCalculator calculatorConfig `yaml:"memory_calculator"`
}

type calculatorConfig struct {
	StackThreads int `yaml:"stack_threads"`
	ClassCount   int `yaml:"class_count"`
	Headroom     int `yaml:"headroom"` // percent
}

func (c calculatorConfig) threads() int {
	if c.StackThreads > 0 {
		return c.StackThreads
	}
	return jvm.DefaultThreads
}

type optionsConfig struct {
	FromEnvironment *bool      `yaml:"from_environment"`
	JavaOpts        stringList `yaml:"java_opts"`
}

// fromEnvironment is true unless the user says otherwise.
func (c optionsConfig) fromEnvironment() bool { return c.FromEnvironment == nil || *c.FromEnvironment }

type mainConfig struct {
	Class     string `yaml:"java_main_class"`
	Arguments string `yaml:"arguments"`
}

type tomcatConfig struct {
	Tomcat struct {
		Version     string `yaml:"version"`
		ContextPath string `yaml:"context_path"`
		External    bool   `yaml:"external_configuration_enabled"`
	} `yaml:"tomcat"`
	AccessLogging struct {
		State string `yaml:"access_logging"`
	} `yaml:"access_logging_support"`
}

// stringList is a list, or a text of options that spaces separate.
type stringList []string

// UnmarshalYAML reads either form.
func (l *stringList) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		if n.Tag != "!!null" {
			*l = jvm.Words(n.Value)
		}
		return nil
	}
	return n.Decode((*[]string)(l))
}

// jreVariables configure a JVM; the vendors of all but the first are not on a stack.
var jreVariables = []string{"JBP_CONFIG_OPEN_JDK_JRE", "JBP_CONFIG_OPENJDK", "JBP_CONFIG_SAP_MACHINE_JRE", "JBP_CONFIG_ZULU_JRE",
	"JBP_CONFIG_GRAAL_VM_JRE", "JBP_CONFIG_ORACLE_JRE", "JBP_CONFIG_IBM_JRE", "JBP_CONFIG_ZING_JRE"}

func readJavaConfig() (javaConfig, error) {
	var c javaConfig
	for _, name := range jreVariables {
		if err := readSetting(name, &c.jre); err != nil {
			return c, err
		}
		if c.jre.JRE.Version != "" {
			c.versionFrom = name
			break
		}
	}
	if v := os.Getenv("BP_JAVA_VERSION"); v != "" {
		c.jre.JRE.Version, c.versionFrom = v, "BP_JAVA_VERSION"
	}
	for name, target := range map[string]*int{
		"MEMORY_CALCULATOR_STACK_THREADS": &c.jre.MemoryCalculator.StackThreads, "MEMORY_CALCULATOR_HEADROOM": &c.jre.MemoryCalculator.Headroom,
	} {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			*target = n
		}
	}
	for name, target := range map[string]any{"JBP_CONFIG_JAVA_OPTS": &c.options, "JBP_CONFIG_JAVA_MAIN": &c.main, "JBP_CONFIG_TOMCAT": &c.tomcat} {
		if err := readSetting(name, target); err != nil {
			return c, err
		}
	}
	return c, nil
}

// readSetting reads a variable that holds YAML: a map, or a list of maps as it was written for the buildpack of the Ruby time,
// `[jre: {version: 17.+}]`.
func readSetting(name string, target any) error {
	text := os.Getenv(name)
	if strings.TrimSpace(text) == "" {
		return nil
	}
	var doc yaml.Node
	err := yaml.Unmarshal([]byte(text), &doc)
	if err == nil && len(doc.Content) > 0 {
		parts := doc.Content
		if parts[0].Kind == yaml.SequenceNode {
			parts = parts[0].Content
		}
		for _, part := range parts {
			if part.Kind != yaml.MappingNode {
				err = fmt.Errorf("%q is not a setting with a value", part.Value)
			}
			if err == nil {
				err = part.Decode(target)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("the variable %s is not valid: it must be YAML, as '{ jre: { version: 17.+ } }': %w", name, err)
	}
	return nil
}
