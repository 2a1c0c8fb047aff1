/* engine_cases.h - the documents of the engine's cases: an article, and what can happen to it. */
#ifndef TESTS_ENGINE_CASES_H
#define TESTS_ENGINE_CASES_H

#define HEAD "After nine years of work the harbour bridge was opened to traffic on Monday morning. "
#define FIRST                                                                                                     \
    "The mayor cut a ribbon at the northern ramp, and a crowd of some four thousand people walked across before " \
    "the first cars were let through. Many had waited since dawn, wrapped in blankets against a cold wind from "  \
    "the sea, and a brass band from the fishing quarter played until its instruments were too cold to hold. "
#define SECOND                                                                                                     \
    "Engineers had to sink the southern pillar forty metres into the mud, twice as deep as planned, because the "  \
    "bed of the old river turned out to be soft clay. The contractor asked for more money, the city refused, and " \
    "a court settled the matter only last spring, when the last cables were already hanging in their places. "
#define THIRD                                                                                                       \
    "Ferries, which have crossed the bay since the days of steam, will run until the end of the month. Their "      \
    "captains say that they will miss the gulls and the regular passengers, but not the winter storms. Two of the " \
    "boats are to become museums; the third has been sold to an island in the south, where it will carry goats. "
#define FOURTH                                                                                                      \
    "A toll of two coins is due in each direction, half of that for bicycles, nothing for walkers. The money pays " \
    "back a loan over thirty years, after which, the council promises, the crossing will be free for everyone. "
#define LAST "Trams are expected to follow within two years, once the rails on the eastern shore have been laid. "
#define ARTICLE HEAD FIRST SECOND THIRD FOURTH LAST

/* One word is another: "Tuesday". */
#define ARTICLE_CHANGED                                                                                                \
    "After nine years of work the harbour bridge was opened to traffic on Tuesday morning. " FIRST SECOND THIRD FOURTH \
        LAST
#define ARTICLE_MOVED HEAD FIRST THIRD FOURTH SECOND LAST

#define FOOTER                                                                                                        \
    "Get the best of our reporting in your inbox every morning. Subscribe to our newsletter, and follow us for more " \
    "news from the coast. "

/* About half of it. */
#define ARTICLE_HALF HEAD FIRST SECOND

#define OTHER_ARTICLE                                                                                                  \
    "Potters in the hill villages still fire their kilns with olive wood, as their grandparents did. The clay comes "  \
    "from a pit behind the chapel, is left to rot for a winter and is then trodden by foot, an afternoon's work for "  \
    "two. A good jar rings like a bell when it is struck with a knuckle, and keeps water cool through all of August. " \
    "Plastic has taken most of the trade, but restaurants by the coast have begun to ask for plates, and a school of " \
    "design in the capital sends three students every summer, of whom one, last year, did not want to leave again. "

#define TRANSLATED                                                                                                     \
    "Nach neun Jahren Bauzeit wurde die Hafenbruecke am Montagmorgen fuer den Verkehr freigegeben. Die "               \
    "Buergermeisterin durchschnitt ein Band an der noerdlichen Rampe, und etwa viertausend Menschen gingen hinueber, " \
    "bevor die ersten Autos fahren durften. Viele hatten seit dem Morgengrauen gewartet, in Decken gehuellt gegen "    \
    "den kalten Wind von der See, und eine Blaskapelle aus dem Fischerviertel spielte, bis ihre Instrumente zu kalt "  \
    "waren, um sie noch zu halten. "

/* The same frame around whatever a page says. */
#define FRAMED(title, ads, content)                                                                                  \
    "<html><head><title>" title "</title></head><body><header><a href=/>The Coast Courier</a></header><nav><ul><li>" \
    "<a href=/news>News</a><li><a href=/sport>Sport</a><li><a href=/weather>Weather</a></ul></nav>" ads              \
    "<main><article><p>" content "</article></main><footer>Imprint, privacy, all rights reserved by the publisher "  \
    "of this page and its partners.</footer></body></html>"
#define ADS_OF_MAY "<aside>Garden chairs at half the price, this week only, in all our shops.</aside>"
#define ADS_OF_JUNE "<aside>Fly to the islands from 49 a head. Book now and pay later!</aside>"

#endif
