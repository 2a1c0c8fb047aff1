// Two versions of an article, as an example.
export const EXAMPLE = {
  title: "The ferry returns to the harbour",
  url: "https://paper.example/ferry",
  text: `After eleven years the ferry is back. On Saturday morning the Lantern left the old harbour for the first time since the bridge was opened, with ninety passengers on board and a brass band on the upper deck. The crossing to the northern shore takes twelve minutes, and a ticket costs two coins.

"People told us that nobody would want to go by water when there is a road," said the captain, who has spent a winter repairing the engine. "Then the road was closed for a week, and they asked when we could start."

The town has paid for the new landing stage and expects four hundred passengers a day in summer. In winter the ferry will run at weekends only. Bicycles travel free of charge; dogs need a ticket of their own.`,
};

export const SECOND = {
  title: "Ferry is back in the harbour after eleven years",
  url: "https://evening.example/news/ferry-is-back",
  text: `After eleven years the ferry is back. On Saturday morning the Lantern left the old harbour for the first time since the bridge was opened, with ninety passengers on board and a brass band on the upper deck. The crossing to the northern shore takes twelve minutes, and a ticket costs three coins.

"People told us that nobody would want to go by water when there is a road," said the captain, who has spent a winter repairing the engine. "Then the road was closed for a week, and they asked when we could start."

The town has paid for the new landing stage and expects four hundred passengers a day in summer. In winter the ferry will run at weekends only. Bicycles travel free of charge; dogs need a ticket of their own. The mayor will open the stage on Monday.`,
};
