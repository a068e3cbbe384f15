package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// javaServer answers what it was started with. It fills its heap on /fill.
const javaServer = `import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;

public class %s {
    static final List<long[]> kept = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        HttpServer s = HttpServer.create(new InetSocketAddress(Integer.parseInt(System.getenv("PORT"))), 0);
        s.createContext("/", e -> {
            if (e.getRequestURI().getPath().equals("/fill")) {
                while (true) kept.add(new long[1 << 16]);
            }
            String text = System.getProperty("greeting", "hello") + " " + String.join(",", args) + " port=" + System.getenv("SERVER_PORT")
                + " store=" + System.getProperty("javax.net.ssl.trustStore", "").endsWith("truststore.jks");
            e.sendResponseHeaders(200, text.length());
            e.getResponseBody().write(text.getBytes());
            e.close();
        });
        s.setExecutor(Executors.newFixedThreadPool(2));
        s.start();
    }
}
`

// compiled are classes compiled once for all tests, by their path.
var compiled = sync.OnceValues(func() (map[string]string, error) {
	dir, err := os.MkdirTemp("", "javac")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	launcher := "package org.springframework.boot.loader.launch;\n" + strings.Replace(javaServer, "%s", "JarLauncher", 1)
	for name, text := range map[string]string{"Main.java": strings.Replace(javaServer, "%s", "Main", 1), "JarLauncher.java": launcher} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	javac := exec.Command("javac", "--release", "17", "-d", "out", "Main.java", "JarLauncher.java")
	javac.Dir = dir
	if out, err := javac.CombinedOutput(); err != nil {
		return map[string]string{"": string(out)}, err
	}
	classes := map[string]string{}
	err = os.CopyFS(filepath.Join(dir, "copy"), os.DirFS(filepath.Join(dir, "out")))
	for _, name := range []string{"Main.class", "org/springframework/boot/loader/launch/JarLauncher.class"} {
		text, readErr := os.ReadFile(filepath.Join(dir, "copy", name))
		if readErr != nil {
			return nil, readErr
		}
		classes[name] = string(text)
	}
	return classes, err
})

// javaClasses returns the compiled classes, and skips where there is no JDK.
func javaClasses(t *testing.T) map[string]string {
	t.Helper()
	need(t, "javac", "java")
	classes, err := compiled()
	if err != nil {
		t.Fatalf("javac: %v\n%s", err, classes[""])
	}
	return classes
}

const launcherClass = "org/springframework/boot/loader/launch/JarLauncher.class"

// enough is a limit at which the memory calculator is content.
const enough = "MEMORY_LIMIT=1024m"

// startJava stages the app, which must be Java's, and starts it with the limit.
func startJava(t *testing.T, s *staging, limit string, env ...string) *app {
	t.Helper()
	log := s.mustBuild("-buildpackOrder=" + s.addSystem())
	if got := s.result().LifecycleMetadata.DetectedBuildpack; got != "java" {
		t.Fatalf("got buildpack %q; want java\n%s", got, log)
	}
	home := s.unpack()
	if err := os.MkdirAll(filepath.Join(home, "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	return start(t, home, "", append(env, limit)...)
}

func (a *app) answers(want string) {
	a.t.Helper()
	if code, body := a.get("/"); code != 200 || body != want {
		a.t.Errorf("got %d %q; want 200 %q\n%s", code, body, want, a.out.String())
	}
}

func TestStagesJava(t *testing.T) {
	classes := javaClasses(t)
	t.Run("jar", func(t *testing.T) {
		t.Setenv("JBP_CONFIG_JAVA_OPTS", `{java_opts: ["-Dgreeting=hi there"]}`)
		t.Setenv("JBP_CONFIG_JAVA_MAIN", `{arguments: "one 'two three'"}`)
		s := newStaging(t, map[string]string{"app.jar": archive(t, map[string]string{"META-INF/MANIFEST.MF": "Manifest-Version: 1.0\r\nMain-Class: Ma\r\n in\r\n\r\n", "Main.class": classes["Main.class"]})})
		a := startJava(t, s, enough, `JAVA_OPTS=-Dgreeting="good $DAY"`, "DAY=day")
		a.answers("good day one,two three port=null store=true")
		if out := a.out.String(); !strings.Contains(out, "JVM Memory Configuration: -XX:MaxDirectMemorySize=10M -XX:MaxMetaspaceSize=97358K -XX:ReservedCodeCacheSize=240M -Xss1M -Xmx439217K\n") {
			t.Errorf("got %q; want the JVM's memory", out)
		}
	})
	t.Run("unpacked Spring Boot", func(t *testing.T) {
		s := newStaging(t, map[string]string{"META-INF/MANIFEST.MF": "Main-Class: org.springframework.boot.loader.launch.JarLauncher\nStart-Class: x\n", "BOOT-INF/classes/application.properties": "", launcherClass: classes[launcherClass]})
		a := startJava(t, s, enough)
		if code, body := a.get("/"); code != 200 || !strings.Contains(body, "hello  port=") || strings.Contains(body, "port=null") {
			t.Errorf("got %d %q; want SERVER_PORT", code, body)
		}
	})
	t.Run("layers", func(t *testing.T) {
		s := newStaging(t, map[string]string{"application/META-INF/MANIFEST.MF": "Spring-Boot-Version: 3.2.0\n", "application/BOOT-INF/classes/a": "", "dependencies/BOOT-INF/lib/b": "",
			"spring-boot-loader/" + launcherClass: classes[launcherClass]})
		startJava(t, s, enough).get("/")
	})
	t.Run("distribution", func(t *testing.T) {
		s := newStaging(t, map[string]string{"app-1.0/bin/app": "#!/bin/sh\nexec java $JAVA_OPTS -cp \"$(dirname $0)/../lib/app.jar\" Main dist\n", "app-1.0/bin/app.bat": "",
			"app-1.0/lib/app.jar": archive(t, map[string]string{"Main.class": classes["Main.class"]})})
		startJava(t, s, enough).answers("hello dist port=null store=true")
	})
	t.Run("class", func(t *testing.T) {
		startJava(t, newStaging(t, map[string]string{"Main.class": classes["Main.class"]}), enough).answers("hello  port=null store=true")
	})
}

func TestJavaWithoutEnoughMemory(t *testing.T) {
	s := newStaging(t, map[string]string{"Main.class": javaClasses(t)["Main.class"]})
	a := startJava(t, s, "MEMORY_LIMIT=256m")
	err := a.cmd.Wait()
	want := "required memory 609358K is greater than 256M available for allocation: -XX:MaxDirectMemorySize=10M, -XX:MaxMetaspaceSize=97358K, -XX:ReservedCodeCacheSize=240M, -Xss1M x 250 threads\nGive the app more memory (cf scale -m 704M)"
	if exitCode(t, err) != 2 || !strings.Contains(a.out.String(), want) {
		t.Errorf("got %v, %q; want exit code 2 and %q", err, a.out.String(), want)
	}
}

// A JVM whose heap is full prints what fills it, and is killed.
func TestJavaOutOfMemory(t *testing.T) {
	t.Setenv("JBP_CONFIG_OPEN_JDK_JRE", "[memory_calculator: {stack_threads: 20}]")
	s := newStaging(t, map[string]string{"Main.class": javaClasses(t)["Main.class"]})
	a := startJava(t, s, enough, "JAVA_OPTS=-Xmx24m")
	a.get("/")
	go func() { _ = exec.Command("curl", "-s", "-m", "60", a.url("/fill")).Run() }()
	_ = a.cmd.Wait() // its status says how it ended
	out := a.out.String()
	if status := a.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL || !strings.Contains(out, "ResourceExhausted! (1/0)\n") || !strings.Contains(out, "| Instance Count | Total Bytes | Class Name") ||
		!strings.Contains(out, "| [J ") || !strings.Contains(out, "Memory usage:\n") || !strings.Contains(out, "jvmkill killing current process\n") {
		t.Errorf("got %v and %q; want a histogram and the kill", a.cmd.ProcessState, out)
	}
}

func TestJavaFailuresSayTheMend(t *testing.T) {
	javaClasses(t)
	tests := []struct {
		name     string
		files    map[string]string
		env, val string
		want     string
	}{
		{name: "no main class", files: map[string]string{"lib.jar": archive(t, map[string]string{"a.txt": ""})}, want: "No suitable container found for this application: lib.jar has no Main-Class in its META-INF/MANIFEST.MF"},
		{name: "source", files: map[string]string{"pom.xml": "<project/>"}, want: "Build first (mvn package), then push the jar or war: cf push -p target/APP.jar"},
		{name: "built source", files: map[string]string{"build.gradle": "", "build/libs/a.jar": "x"}, want: "cf push -p build/libs/a.jar"},
		{name: "no such Java", files: map[string]string{"A.class": ""}, env: "JBP_CONFIG_OPEN_JDK_JRE", val: "{ jre: { version: 6.+ } }",
			want: "no version of openjdk matching '6.+' found in stack 'test': JBP_CONFIG_OPEN_JDK_JRE asks for it. Available versions: ["},
		{name: "no YAML", files: map[string]string{"A.class": ""}, env: "JBP_CONFIG_TOMCAT", val: "version 10", want: "the variable JBP_CONFIG_TOMCAT is not valid"},
		{name: "broken jar", files: map[string]string{"a.jar": "not a zip"}, want: "a.jar is not a valid jar"},
		{name: "two wars", files: map[string]string{"a.war": "", "b.war": ""}, want: "Multiple WAR files found in build directory"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.env != "" {
				t.Setenv(test.env, test.val)
			}
			s := newStaging(t, test.files)
			code, out := s.build("-buildpackOrder=" + s.addSystem())
			if code != 223 || !strings.Contains(out, test.want) {
				t.Errorf("got exit %d and %q; want 223 and %q", code, out, test.want)
			}
		})
	}
}
