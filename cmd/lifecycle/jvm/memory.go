package jvm

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

// Defaults of the calculation (java-buildpack: src/java/jres/jre.go, java-buildpack-memory-calculator: calculator.go).
const (
	DefaultThreads = 250

	defaultDirect    = 10 * mebi
	defaultCodeCache = 240 * mebi
	defaultStack     = mebi
	metaspaceBase    = size(14000000) // bytes
	metaspaceOfClass = size(5800)     // bytes
)

// memory is one calculation: a container's limit divided among the regions of a JVM's memory.
type memory struct {
	total    size
	headRoom int // percent of total that stays free
	classes  int // loaded by the running app
	threads  int
	set      regions // what JAVA_OPTS determine
}

// regions are the sizes that options of the JVM determine; nil is not determined.
type regions struct{ direct, metaspace, codeCache, stack, heap *size }

// option is the option of a JVM that determines a region.
type option struct {
	prefix string
	of     func(*regions) **size
}

// options are in the order in which they are printed.
func options() []option {
	return []option{
		{"-XX:MaxDirectMemorySize=", func(r *regions) **size { return &r.direct }},
		{"-XX:MaxMetaspaceSize=", func(r *regions) **size { return &r.metaspace }},
		{"-XX:ReservedCodeCacheSize=", func(r *regions) **size { return &r.codeCache }},
		{"-Xss", func(r *regions) **size { return &r.stack }},
		{"-Xmx", func(r *regions) **size { return &r.heap }},
	}
}

// parseRegions reads what JAVA_OPTS determine. A later option replaces an earlier one.
func parseRegions(javaOpts string) (regions, error) {
	var r regions
	for _, word := range Words(javaOpts) {
		for _, o := range options() {
			text, ok := strings.CutPrefix(word, o.prefix)
			if !ok {
				continue
			}
			n, err := parseSize(text)
			if err != nil {
				return r, fmt.Errorf("option %s of JAVA_OPTS: %w", word, err)
			}
			*o.of(&r) = &n
		}
	}
	return r, nil
}

// calculate returns the options of the regions that JAVA_OPTS leave open. All but the heap have fixed sizes; the heap gets what is left.
func (m memory) calculate() (string, error) {
	all := m.set
	for at, value := range map[**size]size{
		&all.direct: defaultDirect, &all.metaspace: size(m.classes)*metaspaceOfClass + metaspaceBase, &all.codeCache: defaultCodeCache, &all.stack: defaultStack,
	} {
		if *at == nil {
			*at = &value
		}
	}
	fixed := size(float64(m.total)*float64(m.headRoom)/100) + *all.direct + *all.metaspace + *all.codeCache + *all.stack*size(m.threads)
	if fixed > m.total {
		return "", m.tooLarge(fixed, all)
	}
	if all.heap == nil {
		rest := m.total - fixed
		all.heap = &rest
	}
	if fixed+*all.heap > m.total {
		return "", m.tooLarge(fixed+*all.heap, all)
	}
	var out []string
	for _, o := range options() {
		if *o.of(&m.set) == nil {
			out = append(out, o.prefix+(*o.of(&all)).String())
		}
	}
	return strings.Join(out, " "), nil
}

// tooLarge is the error of Cloud Foundry's calculator. The heap stands between direct memory and metaspace in it, when it is known.
func (m memory) tooLarge(required size, all regions) error {
	var parts []string
	for _, o := range options() {
		if at := *o.of(&all); at != nil && o.prefix != "-Xmx" {
			parts = append(parts, o.prefix+at.String())
		}
	}
	if all.heap != nil {
		parts = append(parts[:1], append([]string{"-Xmx" + all.heap.String()}, parts[1:]...)...)
	}
	return fmt.Errorf("required memory %s is greater than %s available for allocation: %s x %d threads", required, m.total, strings.Join(parts, ", "), m.threads)
}

// check returns every fault of the arguments.
func (m memory) check() error {
	var all []error
	positive := func(name string, n int64) {
		switch {
		case n == 0:
			all = append(all, fmt.Errorf("--%s must be specified", name))
		case n < 0:
			all = append(all, fmt.Errorf("--%s must be positive: %d", name, n))
		}
	}
	if m.headRoom < 0 || m.headRoom > 100 {
		all = append(all, fmt.Errorf("--head-room must be a valid percentage: %d", m.headRoom))
	}
	positive("loaded-class-count", int64(m.classes))
	positive("thread-count", int64(m.threads))
	if m.total > 0 && m.total < kibi {
		all = append(all, fmt.Errorf("--total-memory must be greater than %d: %d", int64(kibi), int64(m.total)))
	}
	positive("total-memory", int64(m.total))
	return errors.Join(all...)
}

// calculatorMain prints the options of the JVM's memory. Its flags and exit codes are those of Cloud Foundry's calculator.
func calculatorMain(args []string) int {
	var m memory
	var total, javaOpts string
	flags := flag.NewFlagSet(Calculator, flag.ContinueOnError)
	flags.StringVar(&total, "total-memory", "", "memory limit of the container, as 512m")
	flags.StringVar(&javaOpts, "jvm-options", "", "JAVA_OPTS, whose sizes are kept")
	flags.IntVar(&m.headRoom, "head-room", 0, "percent of the total that stays free")
	flags.IntVar(&m.classes, "loaded-class-count", 0, "classes that the running app loads")
	flags.IntVar(&m.threads, "thread-count", 0, "threads of the app")
	if err := flags.Parse(args); err != nil {
		return 1
	}
	err := m.read(total, javaOpts)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	out, err := m.calculate()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		fmt.Fprintln(os.Stderr, m.advice())
		return 2
	}
	fmt.Println(out)
	return 0
}

func (m *memory) read(total, javaOpts string) (err error) {
	if total != "" {
		if m.total, err = parseSize(total); err != nil {
			return err
		}
	}
	if m.set, err = parseRegions(javaOpts); err != nil {
		return err
	}
	return m.check()
}

// leastHeap is the heap below which no app is advised to run.
const leastHeap = 64 * mebi

// advice says how the app can start: with more memory, or with fewer threads, whose stacks are the largest region that most apps can do without.
func (m memory) advice() string {
	for ; ; m.total += step - m.total%step {
		out, err := m.calculate()
		if err != nil {
			continue
		}
		if r, _ := parseRegions(out); m.set.heap != nil || *r.heap >= leastHeap && m.total%step == 0 {
			break
		}
	}
	return fmt.Sprintf("Give the app more memory (cf scale -m %dM), or have the calculator count on fewer threads: cf set-env APP JBP_CONFIG_OPEN_JDK_JRE '{memory_calculator: {stack_threads: 25}}', then cf restage APP", (m.total+mebi-1)/mebi)
}

// step is what advised limits are multiples of.
const step = 64 * mebi
