// Exchanges the token in the address's fragment for a session and a key, and forgets it: a fragment is sent
// to no server, and the address that stays holds none. On each page: a browser keeps the fragment where it is
// led on from one page to another, and one that has a session may have lost its key.
const said = document.getElementById("said");

async function logIn(token) {
  const answer = await fetch("/login", {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify({ token }),
  });
  if (answer.ok) {
    localStorage.setItem("concurve-key", (await answer.json()).key);
    location.replace(location.pathname + location.search);
    return;
  }
  let text = `The server answered with ${answer.status}.`;
  try {
    const { what, remedy } = await answer.json();
    text = `${what}. Try: ${remedy}`;
  } catch { /* no reason was given */ }
  if (said) {
    said.textContent = text;
    said.hidden = false;
  }
}

const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  history.replaceState(null, "", location.pathname + location.search);
  logIn(given);
}
document.getElementById("login")?.addEventListener("submit", (event) => {
  event.preventDefault();
  logIn(document.getElementById("token").value.trim());
});
