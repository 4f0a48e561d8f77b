package packagetest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

const containerDir = "../container"

// containerFile is a container file, taken apart.
type containerFile struct {
	stages []stage
	ignore *patternmatcher.PatternMatcher
}

// stage is what one FROM begins.
type stage struct {
	base, name string
	runs       []string
	copies     []copied
	set        map[string]string   // WORKDIR, USER, VERSION of ARG and so on, by instruction or name
	lists      map[string][]string // ENTRYPOINT, CMD, HEALTHCHECK
	env        []string
}

// copied is one COPY: from the context where stage is empty.
type copied struct {
	stage string
	from  []string
	to    string
}

func readContainerFile() (*containerFile, error) {
	f, err := os.Open(filepath.Join(containerDir, "Dockerfile"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	parsed, err := parser.Parse(f)
	if err != nil {
		return nil, err
	}
	c := &containerFile{}
	for _, node := range parsed.AST.Children {
		if err := c.take(node); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", f.Name(), node.StartLine, err)
		}
	}
	for _, w := range parsed.Warnings {
		return nil, fmt.Errorf("%s: %s", f.Name(), w.Short)
	}
	c.ignore, err = readIgnored()
	return c, err
}

func readIgnored() (*patternmatcher.PatternMatcher, error) {
	f, err := os.Open(filepath.Join(containerDir, "Dockerfile.dockerignore"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	patterns, err := ignorefile.ReadAll(f)
	if err != nil {
		return nil, err
	}
	return patternmatcher.New(patterns)
}

// take reads one instruction. One that it does not know is a fault: it would not be
// carried out here, and what was tested would be another image.
func (c *containerFile) take(node *parser.Node) error {
	var args []string
	for n := node.Next; n != nil; n = n.Next {
		args = append(args, n.Value)
	}
	if strings.EqualFold(node.Value, "from") {
		s := stage{base: args[0], set: map[string]string{}, lists: map[string][]string{}}
		if len(args) == 3 {
			s.name = args[2]
		}
		c.stages = append(c.stages, s)
		return nil
	}
	if len(c.stages) == 0 {
		return fmt.Errorf("%s before FROM", node.Value)
	}
	s := &c.stages[len(c.stages)-1]
	switch word := strings.ToUpper(node.Value); word {
	case "RUN":
		s.runs = append(s.runs, args...)
	case "COPY":
		cp := copied{from: args[:len(args)-1], to: args[len(args)-1]}
		for _, flag := range node.Flags {
			if name, ok := strings.CutPrefix(flag, "--from="); ok {
				cp.stage = name
			} else if !strings.HasPrefix(flag, "--chown=") {
				return fmt.Errorf("COPY %s is not known to this test", flag)
			}
		}
		s.copies = append(s.copies, cp)
	case "ARG":
		name, value, _ := strings.Cut(args[0], "=")
		s.set[name] = value
	case "ENV":
		for i := 0; i+1 < len(args); i += 3 { // name, value, separator
			s.env = append(s.env, args[i]+"="+args[i+1])
		}
	case "WORKDIR", "USER":
		s.set[word] = args[0]
	case "ENTRYPOINT", "CMD", "HEALTHCHECK", "EXPOSE":
		s.lists[word] = args
	case "LABEL":
	default:
		return fmt.Errorf("%s is not known to this test", word)
	}
	return nil
}

// build does what the container file says, below dir, and leaves the image's root in
// rootfs. The machine stands for the image of the toolchain: its Go, its certificates.
func build(dir, rootfs string) (*containerFile, error) {
	c, err := readContainerFile()
	if err != nil {
		return nil, err
	}
	if len(c.stages) != 2 {
		return nil, fmt.Errorf("the container file has %d stages, and this test knows two", len(c.stages))
	}
	first := c.stages[0]
	work := filepath.Join(dir, first.set["WORKDIR"])
	for _, cp := range first.copies {
		if err := c.copyContext(cp, work); err != nil {
			return nil, err
		}
	}
	out := filepath.Join(dir, "out")
	for _, line := range first.runs {
		cmd := exec.Command("sh", "-euc", strings.ReplaceAll(line, "/out/", out+"/"))
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "VERSION="+release, "GOFLAGS=", "GOWORK=off")
		if said, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("RUN %s: %w\n%s", line, err, said)
		}
	}
	for _, cp := range c.stages[1].copies {
		if cp.stage != first.name || len(cp.from) != 1 {
			return nil, fmt.Errorf("COPY %v: the image takes single things from the stage %s", cp.from, first.name)
		}
		from := cp.from[0]
		if rest, ok := strings.CutPrefix(from, "/out/"); ok {
			from = filepath.Join(out, rest)
		}
		if err := copyTo(from, filepath.Join(rootfs, cp.to)); err != nil {
			return nil, err
		}
	}
	return c, os.Chmod(rootfs, 0o755)
}

// copyTo copies a file, or makes an empty folder of a folder.
func copyTo(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.MkdirAll(to, 0o777)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode())
}

// copyContext copies what git knows of the tree, or would take, less what is ignored.
func (c *containerFile) copyContext(cp copied, work string) error {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	listed, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("list the files of the tree: %w", err)
	}
	taken := 0
	for _, name := range strings.Split(strings.Trim(string(listed), "\x00"), "\x00") {
		if !slices.Contains(cp.from, ".") && !slices.Contains(cp.from, name) {
			continue
		}
		ignored, err := c.ignore.MatchesOrParentMatches(name)
		if err != nil {
			return err
		}
		if ignored {
			continue
		}
		err = copyTo(filepath.Join(root, name), filepath.Join(work, name))
		if err != nil && !os.IsNotExist(err) { // one that was removed and not committed yet
			return err
		}
		taken++
	}
	if taken < len(cp.from) {
		return fmt.Errorf("COPY %v: %w", cp.from, fs.ErrNotExist)
	}
	return nil
}
