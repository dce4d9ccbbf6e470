"use strict";
// Asks the gateway how it stands, every two seconds, and shows the report anew when there is a newer one.
(() => {
  const STATUS_MS = 2000, REPORT_MS = 5000, LIMIT_MS = 4000;
  const byId = (id) => document.getElementById(id);
  const count = (value) => (value ?? 0).toLocaleString("en");
  const words = (name) => name.replaceAll("_", " ").replaceAll(".", ": ");
  let mirroring = true, shown = "", failing = 0, last = null, turn = 0;

  function say(id, text, bad = false) {
    const element = byId(id);
    if (element.textContent !== text) element.textContent = text;
    element.classList.toggle("bad", bad);
  }

  function ask(path, options = {}) {
    return fetch(path, { ...options, signal: AbortSignal.timeout(LIMIT_MS), cache: "no-cache" });
  }

  function verdict(held) {
    const word = held?.verdict ?? "HOLD";
    byId("verdict").className = word;
    say("word", word);
    say("reason", held ? held.reason : "nothing has been judged yet");
    document.title = `${word}: llm-migrate`;
    say("scored", held?.scored_pairs == null ? "not yet" : count(held.scored_pairs));
    say("judged", held?.age_s == null ? "not yet" : `${Math.round(held.age_s)} s ago`);
  }

  function problems(status) {
    const mirror = status.mirror, found = [];
    if (!mirror.up) found.push(`the mirror is down${mirror.problem ? `: ${mirror.problem}` : ""}; it is started again, clients are not affected`);
    else if (mirror.age_s > 5) found.push(`the mirror has not answered for ${Math.round(mirror.age_s)} s; copies wait, and what it counts is old`);
    if (mirror.store?.refused) found.push(`${count(mirror.store.refused)} records did not fit the queue of the store and are lost`);
    if (mirror.store?.error) found.push(`the store: ${mirror.store.error}`);
    if (mirror.repeats_paused) found.push(`baseline repeats are paused: ${mirror.repeats_paused}`);
    if (status.verdict?.problem) found.push(`the run could not be judged: ${status.verdict.problem}`);
    for (const [name, one] of Object.entries(status.receivers ?? {})) {
      if (one.problem) found.push(`${name} could not be told: ${one.problem}`);
    }
    const list = byId("problems");
    if (JSON.stringify(found) === list.dataset.found) return;
    list.dataset.found = JSON.stringify(found);
    list.replaceChildren(...found.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
  }

  function reasons(id, found, bad) {
    const all = Object.entries(found), sum = all.reduce((total, [, each]) => total + each, 0);
    const each = all.map(([name, times]) => `${words(name)} ${count(times)}`).join(", ");
    say(id, sum ? `${count(sum)}: ${each}` : "0", bad && sum > 0);
  }

  // Whether the candidate gets copies now, and if not, why.
  function candidate(now) {
    if (now.candidate == null) return ["none: answers are captured", false];
    if (now.canary) return ["answers clients", false];
    if (!now.mirroring) return ["gets no copies: mirroring is stopped", true];
    if (!now.mirror.up) return ["gets no copies: the mirror is down", true];
    return {
      closed: ["takes copies", false],
      open: ["gets no copies: it failed too often (breaker open)", true],
      half_open: ["gets one copy as a probe (breaker half open)", true],
    }[now.mirror.breaker] ?? ["not known", true];
  }

  function status(now) {
    last = now;
    const counters = now.counters, mirror = now.mirror;
    mirroring = now.mirroring;
    verdict(now.verdict);
    say("mirroring", mirroring ? `on, ${now.percent} %` : "stopped", !mirroring);
    say("candidate", ...candidate(now));
    say("passed", count(counters.passed));
    say("mirrored", count(counters.mirrored));
    say("flight", `${count(now.open_requests)} requests, ${count(mirror.in_flight)} copies`);
    say("queue", count(mirror.store?.queued), (mirror.store?.queued ?? 0) > 10000);
    reasons("withheld", now.withheld, false);
    reasons("lost", now.lost, true);
    byId("switch").disabled = false;
    say("switch", mirroring ? "Stop mirroring" : "Start mirroring");
    problems(now);
  }

  async function look() {
    try {
      const asked = turn, answer = await ask("status");
      if (!answer.ok) throw new Error(`the gateway answers ${answer.status}`);
      const now = await answer.json();
      if (asked === turn) status(now); // what was asked before the switch is old
      failing = 0;
      say("state", "");
    } catch (error) {
      failing += 1;
      if (failing > 1) {
        say("state", `no answer from the gateway (${error.message}); what is below is old`);
        byId("switch").disabled = true;
      }
    }
    setTimeout(look, STATUS_MS);
  }

  // A newer report is made ready behind the one that is read, and takes its place where the reader was.
  function swap(text) {
    const main = byId("report"), old = main.querySelector("iframe:not(.next)");
    const frame = Object.assign(document.createElement("iframe"), { title: "Report", className: "next" });
    main.querySelector("iframe.next")?.remove();
    frame.addEventListener("load", () => {
      if (old) keep(old, frame);
      frame.classList.remove("next");
      old?.remove();
      byId("none")?.remove();
    }, { once: true });
    frame.src = `report.html?${encodeURIComponent(text)}`;
    main.append(frame);
  }

  function keep(old, frame) {
    const before = old.contentDocument, after = frame.contentDocument;
    const fields = after.querySelectorAll("#find input, #find select");
    before.querySelectorAll("#find input, #find select").forEach((field, place) => {
      if (fields[place] && field.value !== "") {
        fields[place].value = field.value;
        fields[place].dispatchEvent(new Event("input", { bubbles: true }));
        fields[place].dispatchEvent(new Event("change", { bubbles: true }));
      }
    });
    for (const open of before.querySelectorAll("details[open][id]")) {
      const same = after.getElementById(open.id);
      if (same) same.open = true;
    }
    frame.contentWindow.scrollTo(0, old.contentWindow.scrollY);
    if (document.activeElement === old) frame.focus();
  }

  async function report() {
    try {
      const answer = await ask("report.html", { method: "HEAD" });
      const mark = answer.headers.get("ETag");
      if (answer.ok && mark && mark !== shown) {
        shown = mark;
        swap(mark);
      }
    } catch { /* the next look says that nobody answers */ }
    setTimeout(report, REPORT_MS);
  }

  byId("switch").addEventListener("click", () => {
    byId("question").textContent = mirroring
      ? "Stop mirroring? No request will be copied to the candidate until it is started again. Clients notice nothing."
      : "Start mirroring again?";
    byId("sure").returnValue = "no";
    byId("sure").showModal();
  });

  byId("sure").addEventListener("close", async () => {
    if (byId("sure").returnValue !== "yes") return;
    byId("switch").disabled = true;
    try {
      const answer = await ask(`mirroring/${mirroring ? "stop" : "start"}`, { method: "POST" });
      if (!answer.ok) throw new Error(`the gateway answers ${answer.status}`);
      turn += 1;
      status({ ...last, ...(await answer.json()) });
    } catch (error) {
      byId("switch").disabled = false;
      say("state", `the switch was not thrown: ${error.message}`);
    }
  });

  look();
  report();
})();
