// Command soak lives through many large worlds, one at a time on each processor, and tells in
// one table how the product did against the truth. Anything wrong fails it, with the command
// that repeats the world and the smallest part of it that still goes wrong, as a case for the
// table of worlds that once did.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/seed-1c4f4dc2/reconciler/internal/localpg"
	"github.com/seed-1c4f4dc2/reconciler/internal/world/large"
	"github.com/seed-1c4f4dc2/reconciler/migrations"
)

// template is the database that every world gets a copy of.
const template = "template_world"

// start is when the worlds begin.
var start = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

// simulation is the name by which a fault of the simulation itself is told.
const simulation = "the simulation"

type options struct {
	seeds, operations int
	processes         int
	first             uint64
	intents, troubles string
	shrink            bool
	json              string

	// What a part of the worlds is told by the command whose part it is.
	step uint64
	sum  string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the command with its arguments. It gives the exit code: 0 only if all went right.
func run(ctx context.Context, args []string, out, progress io.Writer) int {
	var o options
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.IntVar(&o.seeds, "seeds", 20, "how many worlds")
	flags.IntVar(&o.operations, "operations", 1000, "operations of each")
	flags.IntVar(&o.processes, "processes", runtime.NumCPU(), "how many processes live through them, one on each processor")
	flags.Uint64Var(&o.first, "first", 1, "the first seed")
	flags.StringVar(&o.intents, "intents", "", "only these intents of each world, by number: 3,17")
	flags.StringVar(&o.troubles, "troubles", "", "only these troubles of each world, by number, or none")
	flags.BoolVar(&o.shrink, "shrink", true, "make a failing world small")
	flags.StringVar(&o.json, "json", "", "write the numbers into this file too")
	flags.Uint64Var(&o.step, "step", 1, "from one seed to the next")
	flags.StringVar(&o.sum, "sum", "", "write what these worlds came to into this file, for the command that adds it to others, and no table")
	if flags.Parse(args) != nil {
		return 2
	}
	failed, err := soak(ctx, o, out, progress)
	if err != nil {
		fmt.Fprintln(progress, "soak: "+err.Error())
		return 1
	}
	if failed > 0 {
		fmt.Fprintf(progress, "soak: %d of %d worlds went wrong\n", failed, o.seeds)
		return 1
	}
	return 0
}

// runner lives through worlds on one server.
type runner struct {
	options
	out, progress io.Writer
	server        *localpg.Server
	made          int // databases, for their names

	sum  result
	done int
}

// result is what worlds came to.
type result struct {
	Numbers         large.Numbers
	Failed          int           // worlds
	Self, Databases time.Duration // of processor time
}

func (r *result) add(o result) {
	r.Numbers.Add(o.Numbers)
	r.Failed += o.Failed
	r.Self += o.Self
	r.Databases += o.Databases
}

func soak(ctx context.Context, o options, out, progress io.Writer) (failed int, err error) {
	if o.operations < 1 || o.operations > large.MaxOperations {
		return 0, fmt.Errorf("-operations %d: give a number between 1 and %d", o.operations, large.MaxOperations)
	}
	began := time.Now()
	live := here
	if o.sum == "" && min(o.processes, o.seeds) > 1 {
		live = apart
	}
	sum, err := live(ctx, o, out, progress)
	switch {
	case err != nil && sum.Numbers.Worlds == 0:
		return 0, err
	case o.sum != "":
		return 0, errors.Join(err, save(o.sum, sum))
	}
	// Also of what was done before it was stopped, or one part died.
	return sum.Failed, errors.Join(err, o.tell(out, sum, time.Since(began)), o.missed(sum.Numbers))
}

// here lives through the worlds in this process, on one server.
func here(ctx context.Context, o options, out, progress io.Writer) (result, error) {
	debug.SetGCPercent(1000) // worlds are short, and there are few at a time
	r := &runner{options: o, out: out, progress: progress}
	var err error
	if r.server, err = localpg.Start(ctx, localpg.Options{Throwaway: true}); err != nil {
		return result{}, err
	}
	err = r.all(ctx)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if stopped := r.server.Stop(ending); err == nil {
		err = stopped
	}
	r.sum.Self, r.sum.Databases = spent(syscall.RUSAGE_SELF), spent(syscall.RUSAGE_CHILDREN) // the server has ended, so its work counts
	return r.sum, err
}

// missed is the fault of many worlds that something never befell any of them. Who asks for a
// part of each knows that.
func (o options) missed(n large.Numbers) error {
	never := n.NeverHappened()
	if o.intents != "" || o.troubles != "" || len(never) == 0 {
		return nil
	}
	return fmt.Errorf("in %d worlds this never happened, so that they prove nothing of it: %s", n.Worlds, strings.Join(never, "; "))
}

// all lives through all worlds.
func (r *runner) all(ctx context.Context) error {
	if err := r.server.CreateDatabase(ctx, template); err != nil {
		return err
	}
	url := r.server.URL(template)
	if err := migrations.Up(ctx, url); err != nil {
		return err
	}
	if err := migrations.SimulateTime(ctx, url, start); err != nil {
		return err
	}
	if err := r.hurry(ctx); err != nil {
		return err
	}
	for n := range r.seeds {
		if err := r.one(ctx, r.first+uint64(n)*r.step); err != nil {
			return err
		}
	}
	return nil
}

// hurry suits the database to worlds whose months pass in seconds. A statement is planned once
// for each connection: to plan it anew for every call would be a tenth of all. It is planned with
// what is known of a ledger that has grown, as a company's is after its first day: an empty
// world's statements would read whole tables until somebody looked after its statistics, and be
// planned again whenever somebody did.
func (r *runner) hurry(ctx context.Context) error {
	url := r.server.URL(template)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	do := func(statements ...string) error {
		for _, statement := range statements {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	}
	if err := do("ALTER SYSTEM SET autovacuum_naptime = '1s'", "ALTER SYSTEM SET jit = off",
		"ALTER SYSTEM SET plan_cache_mode = force_generic_plan", "SELECT pg_reload_conf()"); err != nil {
		return err
	}
	if _, err := large.Run(ctx, large.Draw(lesson, 300), url); err != nil {
		return fmt.Errorf("the world that teaches the database what a ledger is like: %w", err)
	}
	if err := do("ALTER SYSTEM SET autovacuum = off", "SELECT pg_reload_conf()", "ANALYZE"); err != nil {
		return err
	}
	if err := r.server.EmptySchema(ctx, template, "reconciler", "schema_version"); err != nil {
		return err
	}
	return migrations.SimulateTime(ctx, url, start)
}

// lesson is the seed of the world that teaches the database what a ledger is like. It counts
// nowhere.
const lesson = 1 << 40

// one lives through one world, and makes it small where it goes wrong.
func (r *runner) one(ctx context.Context, seed uint64) error {
	intents, troubles, err := r.part()
	if err != nil {
		return err
	}
	plan := large.Draw(seed, r.operations).Only(intents, troubles)
	v, err := r.live(ctx, plan)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		v.Wrongs = append(v.Wrongs, simulation+": "+err.Error())
	}
	r.sum.Numbers.Add(v.Numbers)
	if r.done++; r.done%50 == 0 {
		fmt.Fprintf(r.progress, "%d of %d worlds, %d went wrong\n", r.done, r.seeds, r.sum.Failed)
	}
	if len(v.Wrongs) == 0 {
		return nil
	}
	r.sum.Failed++
	r.show(plan, v.Wrongs)
	if r.shrink {
		plan = r.smaller(ctx, plan, large.Check(v.Wrongs[0]))
	}
	fmt.Fprintf(r.out, "again: go run ./internal/world/soak -seeds 1 -first %d -operations %d%s\n", seed, r.operations, r.which(plan))
	fmt.Fprintf(r.out, "for the table of internal/world/large/found_test.go:\n%s\n", large.Keep(v.Wrongs[0], plan))
	return nil
}

// show prints what went wrong in a world.
func (r *runner) show(p *large.Plan, wrongs []string) {
	fmt.Fprintf(r.out, "seed %d went wrong:\n", p.Seed)
	for n, s := range wrongs {
		if n == 20 {
			fmt.Fprintf(r.out, "  … and %d more\n", len(wrongs)-n)
			break
		}
		fmt.Fprintln(r.out, "  "+s)
	}
}

// smaller is the smallest part of a plan that the same check still finds wrong: another fault
// that a smaller part may show is not the one that was found.
func (r *runner) smaller(ctx context.Context, p *large.Plan, check string) *large.Plan {
	return p.Only(large.Shrink(p, func(some *large.Plan) bool {
		v, err := r.live(ctx, some)
		if err != nil {
			v.Wrongs = append(v.Wrongs, simulation+": "+err.Error())
		}
		return ctx.Err() == nil && slices.ContainsFunc(v.Wrongs, func(wrong string) bool { return large.Check(wrong) == check })
	}))
}

// which is the part of a world that a plan is, as arguments of this command.
func (r *runner) which(p *large.Plan) string {
	if !r.shrink && r.intents == "" && r.troubles == "" {
		return ""
	}
	intents, troubles := p.Parts()
	return " -intents " + numbers(intents) + " -troubles " + numbers(troubles)
}

// live lives through one plan in a database of its own.
func (r *runner) live(ctx context.Context, p *large.Plan) (large.Verdict, error) {
	r.made++
	name := fmt.Sprintf("world_%d", r.made)
	if err := r.server.CopyDatabase(ctx, template, name); err != nil {
		return large.Verdict{}, err
	}
	v, err := large.Run(ctx, p, r.server.URL(name))
	dropping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if dropped := r.server.DropDatabase(dropping, name); err == nil {
		err = dropped
	}
	return v, err
}

// part reads which part of the worlds is asked for; nil is all.
func (r *runner) part() (intents, troubles []int, err error) {
	for _, list := range []struct {
		text string
		into *[]int
	}{{r.intents, &intents}, {r.troubles, &troubles}} {
		if list.text == "" {
			continue
		}
		*list.into = []int{}
		if list.text == "none" {
			continue
		}
		for _, s := range strings.Split(list.text, ",") {
			n, err := strconv.Atoi(s)
			if err != nil {
				return nil, nil, fmt.Errorf("%q is no list of numbers such as 3,17", list.text)
			}
			*list.into = append(*list.into, n)
		}
	}
	return intents, troubles, nil
}

func numbers(list []int) string {
	if len(list) == 0 {
		return "none"
	}
	text := make([]string, len(list))
	for i, n := range list {
		text[i] = strconv.Itoa(n)
	}
	return strings.Join(text, ",")
}

// tell writes the table, and the numbers as JSON where that is asked for.
func (o options) tell(out io.Writer, sum result, took time.Duration) error {
	if err := sum.Numbers.Table(out); err != nil {
		return err
	}
	cpu := sum.Self + sum.Databases
	each := cpu.Seconds() * 1000 / float64(max(sum.Numbers.Operations, 1))
	fmt.Fprintf(out, "%s by the clock, %s of processor time (%s of it the database's), %.2f ms an operation\n",
		took.Round(time.Second), cpu.Round(time.Second), sum.Databases.Round(time.Second), each)
	if o.json == "" {
		return nil
	}
	text, err := json.MarshalIndent(struct {
		Numbers    large.Numbers `json:"numbers"`
		Seconds    float64       `json:"seconds"`
		CPUSeconds float64       `json:"cpu_seconds"`
		Processors int           `json:"processors"`
	}{sum.Numbers, took.Seconds(), cpu.Seconds(), runtime.NumCPU()}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.json, append(text, '\n'), 0o644)
}

func spent(who int) time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
